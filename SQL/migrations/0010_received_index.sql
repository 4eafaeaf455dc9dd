-- migrate: no-transaction
-- 0010_received_index.sql: the versions of a day.
-- Locks: none that stop anyone (CONCURRENTLY). Older daemons: not affected.
--
-- Versions lie in the table in the order in which they arrived, so that a summary of each 128 pages is enough: a few
-- kilobytes in place of a B-tree, which every push would have to add to. The second column is daily_activity's day.

CREATE INDEX CONCURRENTLY game_versions_received_idx ON game_versions
    USING brin (received, ((received AT TIME ZONE 'UTC')::date)) WITH (autosummarize = on);
COMMENT ON INDEX game_versions_received_idx IS 'Finds the versions that arrived in a span of time: history by received, daily_activity by day.';
