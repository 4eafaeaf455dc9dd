SELECT E'a' 'b;';
SELECT 2;
SELECT E'a'
;
SELECT 'b';
