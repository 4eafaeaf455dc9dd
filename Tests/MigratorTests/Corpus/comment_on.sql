CREATE TABLE t (a int);
COMMENT ON TABLE t IS 'One row per thing; see a.';
COMMENT ON COLUMN t.a IS E'It\'s; a';
COMMENT ON TABLE t IS NULL;
