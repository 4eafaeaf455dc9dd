-- silent_devices.sql: Which devices may log in, but have not pushed for long?
-- Variables: days: how far back (30).
-- Example: ieumd psql -f SQL/queries/silent_devices.sql
\if :{?days}
\else
\set days 30
\endif
SELECT player_id, name, device_id, created, last_received, pushes
  FROM player_devices
 WHERE revoked IS NULL AND coalesce(last_received, created) < now() - make_interval(days => :days)
 ORDER BY last_received NULLS FIRST;
