SELECT 'a; '
  'b; '
  -- a comment; isn't in the way
  'c;';
SELECT 2;
