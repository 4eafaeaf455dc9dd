SELECT 1;
SELECT 2 -- no semicolon; none
/* ; */
