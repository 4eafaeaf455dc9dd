-- handle_day.sql: How did everybody do with one day's word of 한들 (the latest one that was played)?
-- Variables: none.
-- Example: ieumd psql -f SQL/queries/handle_day.sql
SELECT h.game_number, h.answer, h.player_id, h.guesses, h.did_win, h.board
  FROM (SELECT g.*, max(g.game_number) OVER () AS latest FROM handle_games AS g WHERE g.is_finished) AS h
 WHERE h.game_number = h.latest
 ORDER BY h.did_win DESC, h.guesses, h.played;
