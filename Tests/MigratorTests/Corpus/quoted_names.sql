CREATE TABLE "a;b" ("x""y;" int, "--" int, "/*" int);
SELECT "x""y;" FROM "a;b";
