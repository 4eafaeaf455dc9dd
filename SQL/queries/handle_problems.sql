-- handle_problems.sql: Which states of 한들 do not fit the model, and why?
-- Variables: none.
-- Example: ieumd psql -f SQL/queries/handle_problems.sql
SELECT problem, count(*) AS games, count(DISTINCT player_id) AS players, min(player_id::text || ' ' || game_id) AS example
  FROM handle_games
 WHERE problem IS NOT NULL AND problem <> 'deleted'
 GROUP BY problem ORDER BY games DESC, problem;
