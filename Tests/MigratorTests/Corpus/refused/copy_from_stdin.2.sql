CREATE TABLE t (a text);
COPY t FROM stdin;
it's; "a
\.
SELECT 1;
