-- handle_day.sql: How did everybody do with one days word of 한들 (the latest one that was played)?
-- Variables: none.
-- Example: ieumd psql -f SQL/queries/handle_day.sql
SELECT game_number, answer, player_id, guesses, did_win, board
  FROM handle_games
 WHERE is_finished AND game_number = (SELECT max(game_number) FROM handle_games WHERE is_finished)
 ORDER BY did_win DESC, guesses, played;
