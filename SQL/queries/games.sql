-- games.sql: Which games does a player have, and where were they last played?
-- Variables: player: whose (needed).
-- Example: ieumd psql -f SQL/queries/games.sql -v player=ID
\if :{?player}
\else
\set ON_ERROR_STOP on
DO $$ BEGIN RAISE EXCEPTION 'this question needs a player' USING HINT = 'Add -v player=ID; TABLE player_summary lists them.'; END $$;
\endif
SELECT collection, game_id, revision, device, received, schema, size
  FROM current_games WHERE player_id = :'player' ORDER BY revision DESC;
