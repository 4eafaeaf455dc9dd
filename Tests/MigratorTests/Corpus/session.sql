SET search_path = public; SET lock_timeout = '5s'; RESET ALL; SET ROLE NONE;
SHOW search_path;
DISCARD ALL;
