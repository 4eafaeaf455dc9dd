-- handle_player.sql: How well does a player of 한들 do: wins, streaks, and in how many guesses?
-- Variables: player: whose (needed).
-- Example: ieumd psql -f SQL/queries/handle_player.sql -v player=ID
\if :{?player}
\else
\set ON_ERROR_STOP on
DO $$ BEGIN RAISE EXCEPTION 'this question needs a player' USING HINT = 'Add -v player=ID; TABLE player_summary lists them.'; END $$;
\endif
SELECT played, won, win_percent, current_streak, longest_streak, last_played
  FROM handle_statistics WHERE player_id = :'player';
SELECT d.guesses, d.games, repeat('🟩', (20 * d.games / greatest(max(d.games) OVER (), 1))::integer) AS share
  FROM handle_statistics AS s
 CROSS JOIN LATERAL (VALUES (1, s.in_1), (2, s.in_2), (3, s.in_3), (4, s.in_4), (5, s.in_5), (6, s.in_6)) AS d (guesses, games)
 WHERE s.player_id = :'player' ORDER BY d.guesses;
