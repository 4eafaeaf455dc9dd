-- migrate: no-transaction
-- 0014_conflict_revisions_index.sql: the versions that met a rival, in the order of their revisions.
-- Locks: none that stop anyone (CONCURRENTLY). Older daemons: not affected.
--
-- VERSIONS conflicts=true pages through a player's conflicts, of all games, by revision. Only conflicts are in it, so that
-- the usual push does not touch it.

CREATE INDEX CONCURRENTLY game_versions_conflict_revisions_idx ON game_versions (player_id, revision)
    WHERE outcome IN ('won', 'lost');
COMMENT ON INDEX game_versions_conflict_revisions_idx IS 'Lists the conflicts of a player, of all games, in the order of their revisions.';
