\connect - - - 5433
SELECT 1;
