-- game_history.sql: What happened to one game: every version, who pushed it, and how it fared?
-- Variables: player: whose (needed); game: which (needed); collection: of which type (handle.game).
-- Example: ieumd psql -f SQL/queries/game_history.sql -v player=ID -v game=ID
\if :{?player}
\else
\set ON_ERROR_STOP on
DO $$ BEGIN RAISE EXCEPTION 'this question needs a player' USING HINT = 'Add -v player=ID; TABLE player_summary lists them.'; END $$;
\endif
\if :{?game}
\else
\set ON_ERROR_STOP on
DO $$ BEGIN RAISE EXCEPTION 'this question needs a game' USING HINT = 'Add -v game=ID; games.sql lists them.'; END $$;
\endif
\if :{?collection}
\else
\set collection handle.game
\endif
SELECT revision, device, outcome, CASE WHEN is_head THEN 'head' WHEN is_tombstone THEN 'deletes' ELSE '' END AS note,
       base, rival, saved, stamp, received, size
  FROM history
 WHERE player_id = :'player' AND collection = :'collection' AND game_id = :'game'
 ORDER BY revision;
