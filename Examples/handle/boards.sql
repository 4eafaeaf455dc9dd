-- The boards of every saved version of 한들's games, drawn from the states themselves: psql -f boards.sql
-- A state is stored as the app pushed it, so the database can be asked about what is inside.
\set QUIET on
\pset linestyle unicode
\pset border 2
\pset footer off
SELECT v.revision, d.name AS device, v.outcome, CASE WHEN v.revision = g.head_revision THEN 'head' ELSE '' END AS head,
       b.board, CASE WHEN (v.state->>'didPlayerWin')::boolean THEN 'won' ELSE 'row ' || (v.state->>'currentRow') END AS play
  FROM game_versions v
  JOIN devices d ON d.player_id = v.player_id AND d.device_id = v.device_id
  JOIN games g ON g.player_id = v.player_id AND g.collection = v.collection AND g.game_id = v.game_id
 CROSS JOIN LATERAL (
       SELECT string_agg(r.marks || ' ' || r.guess, E'\n' ORDER BY r.place) AS board
         FROM (SELECT row.place,
                      string_agg(CASE key->>'mark' WHEN 'rightPlace' THEN '🟩' WHEN 'wrongPlace' THEN '🟨'
                                                   WHEN 'absent' THEN '⬛' ELSE '⬜' END, '' ORDER BY k.place) AS marks,
                      string_agg(key->>'jamo', '' ORDER BY k.place) AS guess
                 FROM json_array_elements(v.state->'answerBoard') WITH ORDINALITY AS row (keys, place),
                      json_array_elements(row.keys) WITH ORDINALITY AS k (key, place)
                GROUP BY row.place
               HAVING string_agg(key->>'jamo', '') <> '') AS r) AS b
 WHERE v.collection = 'handle.game' AND v.state IS NOT NULL
 ORDER BY v.player_id, v.revision;
