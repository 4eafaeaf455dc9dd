SELECT N'a; b', n'it''s;';
SELECT 2;
