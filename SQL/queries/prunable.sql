-- prunable.sql: How much would retention free, by age of the versions that are not heads?
-- Variables: none.
-- Example: ieumd psql -f SQL/queries/prunable.sql
SELECT CASE WHEN age < interval '7 days' THEN '1: under 7 days' WHEN age < interval '30 days' THEN '2: 7 to 30 days'
            WHEN age < interval '90 days' THEN '3: 30 to 90 days' ELSE '4: 90 days and more' END AS age,
       count(*) AS versions, pg_size_pretty(sum(size)) AS states,
       count(*) FILTER (WHERE outcome IN ('won', 'lost')) AS of_conflicts
  FROM (SELECT now() - received AS age, size, outcome FROM history WHERE NOT is_head) AS h
 GROUP BY 1 ORDER BY 1;
