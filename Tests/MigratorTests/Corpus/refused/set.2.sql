-- a comment
\set x 'a;b'
SELECT 1;
