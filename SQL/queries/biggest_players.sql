-- biggest_players.sql: Whose history takes the most room?
-- Variables: rows: how many (20).
-- Example: ieumd psql -f SQL/queries/biggest_players.sql
\if :{?rows}
\else
\set rows 20
\endif
SELECT player_id, versions, games, pg_size_pretty(octets) AS states, pg_size_pretty(octets / nullif(versions, 0)) AS per_version,
       last_received
  FROM player_summary ORDER BY octets DESC, player_id LIMIT :rows;
