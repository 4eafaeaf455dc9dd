-- a comment; here
SELECT 1;
