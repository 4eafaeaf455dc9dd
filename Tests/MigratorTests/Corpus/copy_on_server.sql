CREATE TABLE t (a int);
COPY t TO '/dev/null';
COPY (SELECT 1) TO PROGRAM 'cat > /dev/null; true';
CREATE TABLE stdin (a int); SELECT * FROM stdin;
