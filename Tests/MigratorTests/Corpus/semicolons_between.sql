SELECT 1;;
;SELECT 2;
-- a comment
;
