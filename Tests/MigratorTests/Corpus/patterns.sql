SELECT 'a;b' ~ '^\w;\w$', 'x' !~~ 'a%;';
SELECT regexp_replace('a;b', E'(\\w);', '\1', 'g');
