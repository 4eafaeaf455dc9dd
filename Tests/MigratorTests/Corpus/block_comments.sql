/* a; b */ SELECT /* ; */ 1; /* c;
 d; */ SELECT 2;/**/SELECT 3;/***/SELECT 4;
