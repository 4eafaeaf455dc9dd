SELECT $한글$ ; 'a $한글$;
SELECT $é$;$é$;
