SELECT $1a$ ; SELECT 2;
SELECT '$x$'; SELECT '$x$';
