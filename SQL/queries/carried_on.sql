-- carried_on.sql: How many games were carried on with on another device than the one they were begun on?
-- Variables: days: how far back (30).
-- Example: ieumd psql -f SQL/queries/carried_on.sql
\if :{?days}
\else
\set days 30
\endif
SELECT collection, count(*) AS games, count(*) FILTER (WHERE devices > 1) AS carried_on,
       round(100.0 * count(*) FILTER (WHERE devices > 1) / count(*), 1) AS percent
  FROM (SELECT player_id, collection, game_id, count(DISTINCT device_id) AS devices
          FROM history
         WHERE received > now() - make_interval(days => :days)
         GROUP BY player_id, collection, game_id) AS g
 GROUP BY collection ORDER BY collection;
