SELECT 1+--;
2;
SELECT 4*/*;*/2;
SELECT 1 - -1;
SELECT 7/2;
SELECT 5-/* ; */-2;
