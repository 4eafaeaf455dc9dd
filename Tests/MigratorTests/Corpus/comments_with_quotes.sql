-- it's a quote; and "another
SELECT 1;
/* don't; " $$ $x$ */ SELECT 2;
-- $$
SELECT 3;
/* 'a' -- */ SELECT 4;
