CREATE TABLE spans (begin int, ending int);
SELECT begin FROM spans;
CREATE TABLE function (procedure int);
SELECT begin, ending FROM spans, function;
