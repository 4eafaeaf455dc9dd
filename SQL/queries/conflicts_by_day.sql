-- conflicts_by_day.sql: How often do players meet conflicts, day by day?
-- Variables: days: how far back (7).
-- Example: ieumd psql -f SQL/queries/conflicts_by_day.sql
\if :{?days}
\else
\set days 7
\endif
SELECT day, collection, pushes, won, lost, round(100.0 * (won + lost) / pushes, 2) AS percent
  FROM daily_activity
 WHERE day > (now() AT TIME ZONE 'UTC')::date - :days
 ORDER BY day DESC, collection;
