SELECT 'a;'
  'b;';
SELECT 2;
