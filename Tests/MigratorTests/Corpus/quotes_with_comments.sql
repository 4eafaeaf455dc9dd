SELECT '-- no comment; ';
SELECT '/* none; ' , ' */ either';
SELECT "a" FROM (SELECT 1 AS "a") AS "/* x; */";
