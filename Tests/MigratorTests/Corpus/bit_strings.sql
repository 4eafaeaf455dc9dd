SELECT B'01;', b'10', X'ff', x'1F;';
SELECT 2;
