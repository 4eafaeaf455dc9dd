-- handle_unfinished.sql: Which games of 한들 were left in the middle?
-- Variables: days: how far back (30).
-- Example: ieumd psql -f SQL/queries/handle_unfinished.sql
\if :{?days}
\else
\set days 30
\endif
SELECT player_id, game_id, game_number, guesses, current_row AS row, current_column AS "column", device, received
  FROM handle_games
 WHERE NOT is_finished AND received > now() - make_interval(days => :days)
 ORDER BY received DESC;
