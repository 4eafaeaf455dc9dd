CREATE TABLE d$t (a$b int, c$$ int);
SELECT a$b, c$$ FROM d$t;
SELECT 1 AS x$y$z;
