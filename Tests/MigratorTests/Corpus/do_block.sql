DO $$
DECLARE n int := 0;
BEGIN
  FOR i IN 1..3 LOOP
    n := n + i;
  END LOOP;
  RAISE NOTICE 'n = %; done', n;
END;
$$;
DO LANGUAGE plpgsql 'BEGIN NULL; END';
