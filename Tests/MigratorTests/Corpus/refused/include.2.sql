SELECT 1;
\i other.sql
SELECT 2;
