-- migrate: no-transaction
-- 0016_device_names_index.sql: devices by what their owners call them.
-- Locks: none that stop anyone (CONCURRENTLY). Older daemons: not affected.
--
-- `ieumd players --search NAME` looks for the beginning of a name, in upper or lower case.

CREATE INDEX CONCURRENTLY devices_name_idx ON devices (lower(name) text_pattern_ops, player_id);
COMMENT ON INDEX devices_name_idx IS 'Finds players by the beginning of a device''s name.';
