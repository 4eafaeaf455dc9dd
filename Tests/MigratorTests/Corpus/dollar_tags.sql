SELECT $a$ $b$ ; $$ ; $A$ $a$;
SELECT $_1$ ; $_1$;
SELECT $a1$ $a$ ; $a1$;
