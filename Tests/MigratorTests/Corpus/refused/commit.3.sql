SELECT 1;
/* a
*/ commit work;
