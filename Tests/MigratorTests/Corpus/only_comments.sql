-- nothing; at all
/* here; 'either */
