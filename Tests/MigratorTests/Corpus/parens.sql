SELECT (1); SELECT ((1), ';');
SELECT (SELECT (2)) ; SELECT '('; SELECT ')';
SELECT 1 AS "("; SELECT $$($$;
