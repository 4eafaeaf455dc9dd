SELECT 'é;' AS é; SELECT ' ;';
SELECT 2;
