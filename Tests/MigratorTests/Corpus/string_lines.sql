SELECT 'a
; b
-- c;
';
SELECT 2;
