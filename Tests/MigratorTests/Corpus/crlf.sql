-- a comment; here
CREATE TABLE t (a int);
INSERT INTO t
  VALUES (1);
SELECT 'a
;b';
/* c;
 */ SELECT 2;
