CREATE TABLE t (a int, owner name DEFAULT current_user);
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON t USING (owner = current_user) WITH CHECK (a > 0);
GRANT SELECT ON t TO PUBLIC;
