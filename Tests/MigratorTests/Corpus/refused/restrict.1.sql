\restrict 0aB
SELECT 1;
