SELECT 1 AS$$ ; SELECT $$ a; $$;
