

COPY public.t (a, "b;c") FROM STDIN WITH (FORMAT csv);
1,"2
\.
