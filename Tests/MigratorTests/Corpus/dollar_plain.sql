SELECT $$a; 'b' "c" -- d /* $$;
SELECT $$$$;
SELECT 2;
