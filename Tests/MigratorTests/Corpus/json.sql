SELECT '{"a": "it''s \"; x\\"}'::json;
SELECT '[";", "--", "/*"]'::jsonb -> 0;
SELECT '{"a":{"b":1}}'::jsonb #>> '{a,b}', '{"a":1}'::jsonb @> '{"a":1}', '{}'::jsonb ? 'a';
