SELECT E'it\'s; fine', e'\\', E'\\\'; ';
SELECT E'a''b; ';
SELECT E'\x27;';
