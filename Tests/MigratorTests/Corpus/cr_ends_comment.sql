SELECT 1 --c;, 2;
-- a;SELECT 3;
