SELECT (ARRAY[1, 2, 3])[1:2], '1'::int, '{a,b}'::text[];
SELECT 'x'::varchar(3) || ';';
