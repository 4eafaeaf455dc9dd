-- activity.sql: How much is played, day by day?
-- Variables: days: how far back (30).
-- Example: ieumd psql -f SQL/queries/activity.sql
\if :{?days}
\else
\set days 30
\endif
SELECT day, collection, pushes, players, devices, games, created, deleted, pg_size_pretty(octets) AS states
  FROM daily_activity
 WHERE day > (now() AT TIME ZONE 'UTC')::date - :days
 ORDER BY day DESC, collection;
