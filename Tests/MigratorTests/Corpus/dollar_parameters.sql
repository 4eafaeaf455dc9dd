PREPARE p (int, int) AS SELECT $1+$2, $1;
EXECUTE p (1, 2);
PREPARE q (text) AS SELECT $1||$$;$$;
DEALLOCATE ALL;
