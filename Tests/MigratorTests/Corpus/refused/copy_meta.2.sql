CREATE TABLE t (a int);
\copy t FROM 'x.csv'
