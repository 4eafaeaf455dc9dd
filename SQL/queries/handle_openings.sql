-- handle_openings.sql: With which words do players of 한들 begin, and how far does each lead?
-- Variables: rows: how many (20); least: in how many games at least (1).
-- Example: ieumd psql -f SQL/queries/handle_openings.sql
\if :{?rows}
\else
\set rows 20
\endif
\if :{?least}
\else
\set least 1
\endif
SELECT o.word, count(*) AS games, count(DISTINCT o.player_id) AS players,
       round(avg(length(regexp_replace(o.marks, '[^🟩]', '', 'g'))), 2) AS mean_green,
       round(avg(length(regexp_replace(o.marks, '[^🟨]', '', 'g'))), 2) AS mean_yellow,
       round(avg(g.guesses) FILTER (WHERE g.did_win), 2) AS mean_guesses
  FROM handle_guesses AS o
  JOIN handle_games AS g ON g.player_id = o.player_id AND g.game_id = o.game_id
 WHERE o.guess = 1
 GROUP BY o.word HAVING count(*) >= :least
 ORDER BY games DESC, o.word LIMIT :rows;
