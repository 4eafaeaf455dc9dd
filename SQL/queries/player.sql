-- player.sql: Who is this player: what is kept of them, and on which devices do they play?
-- Variables: player: whose (needed).
-- Example: ieumd psql -f SQL/queries/player.sql -v player=ID
\if :{?player}
\else
\set ON_ERROR_STOP on
DO $$ BEGIN RAISE EXCEPTION 'this question needs a player' USING HINT = 'Add -v player=ID; TABLE player_summary lists them.'; END $$;
\endif
SELECT created, last_revision, purged_before, devices, games, deleted, versions, conflicts, pg_size_pretty(octets) AS states,
       last_received
  FROM player_summary WHERE player_id = :'player';
SELECT name, device_id, created, revoked, pushes, last_received, clock_offset
  FROM player_devices WHERE player_id = :'player' ORDER BY last_received DESC NULLS LAST;
