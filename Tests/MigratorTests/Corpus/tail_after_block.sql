SELECT 1;
/* the end; of it
   -- all */