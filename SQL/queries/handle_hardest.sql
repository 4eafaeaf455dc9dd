-- handle_hardest.sql: Which words of 한들 are the hardest?
-- Variables: rows: how many (20); least: in how many games at least (1).
-- Example: ieumd psql -f SQL/queries/handle_hardest.sql
\if :{?rows}
\else
\set rows 20
\endif
\if :{?least}
\else
\set least 1
\endif
SELECT answer, count(*) AS games, round(100.0 * count(*) FILTER (WHERE did_win) / count(*), 1) AS win_percent,
       round(avg(guesses) FILTER (WHERE did_win), 2) AS mean_guesses
  FROM handle_games
 WHERE is_finished AND did_win IS NOT NULL AND answer IS NOT NULL
 GROUP BY answer HAVING count(*) >= :least
 ORDER BY win_percent, mean_guesses DESC NULLS FIRST, answer LIMIT :rows;
