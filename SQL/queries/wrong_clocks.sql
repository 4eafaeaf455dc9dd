-- wrong_clocks.sql: Which devices have a clock that runs ahead, and did it gain them anything?
-- Variables: seconds: how wrong at least (60).
-- Example: ieumd psql -f SQL/queries/wrong_clocks.sql
\if :{?seconds}
\else
\set seconds 60
\endif
SELECT player_id, name, device_id, clock_offset, last_offset, held_down, pushes, won
  FROM player_devices
 WHERE clock_offset > make_interval(secs => :seconds)
 ORDER BY clock_offset DESC;
