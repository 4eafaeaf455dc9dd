-- migrate: no-transaction
-- 0009_conflicts_index.sql: the versions that met a rival, found by it.
-- Locks: none that stop anyone (CONCURRENTLY). Older daemons: not affected.
--
-- Only conflicts are in it, so that the usual push does not touch it. The view conflicts reads it in place of all
-- versions, and retention asks it whether a version took part in a young conflict.

CREATE INDEX CONCURRENTLY game_versions_conflicts_idx ON game_versions (player_id, rival) WHERE outcome IN ('won', 'lost');
COMMENT ON INDEX game_versions_conflicts_idx IS 'Finds the conflicts of a player, and those that a version took part in as the head.';
