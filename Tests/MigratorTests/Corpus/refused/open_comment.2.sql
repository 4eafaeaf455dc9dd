SELECT 1;
/* a /* b */ ;
