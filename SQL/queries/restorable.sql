-- restorable.sql: Which states of a player lost a conflict, or were deleted, and can be brought back?
-- Variables: player: whose (needed).
-- Example: ieumd psql -f SQL/queries/restorable.sql -v player=ID
\if :{?player}
\else
\set ON_ERROR_STOP on
DO $$ BEGIN RAISE EXCEPTION 'this question needs a player' USING HINT = 'Add -v player=ID; TABLE player_summary lists them.'; END $$;
\endif
SELECT 'lost a conflict' AS why, collection, game_id, loser_revision AS revision, loser_device AS device,
       loser_saved AS saved, loser_size AS size, differing_keys
  FROM conflicts
 WHERE player_id = :'player' AND loser_size > 0
 UNION ALL
(SELECT DISTINCT ON (h.collection, h.game_id)
        'was deleted', h.collection, h.game_id, h.revision, h.device, h.saved, h.size, NULL
   FROM history AS d
   JOIN history AS h ON h.player_id = d.player_id AND h.collection = d.collection AND h.game_id = d.game_id
                    AND h.revision < d.revision AND NOT h.is_tombstone AND h.outcome <> 'lost'
  WHERE d.player_id = :'player' AND d.is_head AND d.is_tombstone
  ORDER BY h.collection, h.game_id, h.revision DESC)
 ORDER BY revision DESC;
