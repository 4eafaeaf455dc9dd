SELECT 'C:\', 'a\'; SELECT '\\';
SELECT '\n;';
