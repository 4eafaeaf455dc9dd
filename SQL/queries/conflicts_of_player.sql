-- conflicts_of_player.sql: Which conflicts did a player have: who won, who lost, and in what did they differ?
-- Variables: player: whose (needed).
-- Example: ieumd psql -f SQL/queries/conflicts_of_player.sql -v player=ID
\if :{?player}
\else
\set ON_ERROR_STOP on
DO $$ BEGIN RAISE EXCEPTION 'this question needs a player' USING HINT = 'Add -v player=ID; TABLE player_summary lists them.'; END $$;
\endif
SELECT met, collection, game_id, incoming, winner_revision, winner_device, winner_stamp, loser_revision, loser_device,
       loser_stamp, differing_keys, pruned
  FROM conflicts WHERE player_id = :'player' ORDER BY met DESC, loser_revision DESC;
