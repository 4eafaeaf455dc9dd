-- schemas.sql: Which schema versions of the apps are still in use, and since when was each last seen?
-- Variables: none.
-- Example: ieumd psql -f SQL/queries/schemas.sql
SELECT collection, schema, count(*) AS games, count(DISTINCT player_id) AS players, max(received) AS last_received
  FROM current_games GROUP BY collection, schema ORDER BY collection, schema DESC;
