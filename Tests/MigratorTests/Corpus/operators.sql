CREATE FUNCTION eq(a int, b int) RETURNS boolean LANGUAGE sql RETURN a = b;
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = eq);
SELECT 1 === 1; SELECT 1 <> 2, 3 >= 2, @ -5, |/ 25, 5 # 3, ~ 1;
