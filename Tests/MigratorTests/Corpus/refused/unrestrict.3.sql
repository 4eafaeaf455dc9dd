SELECT 1;

\unrestrict 0aB
