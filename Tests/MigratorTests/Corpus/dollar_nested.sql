DO $outer$ BEGIN EXECUTE $inner$ SELECT $$x;$$; $inner$; END $outer$;
SELECT 2;
