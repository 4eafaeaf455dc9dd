-- one; two
SELECT 1 -- three; four
, 2; -- five;
SELECT 3; --
--;
