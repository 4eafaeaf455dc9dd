-- The boards of every saved version of 한들's games, drawn from the states themselves: psql -f boards.sql
-- A state is stored as the app pushed it, so the database can be asked about what is inside.
\set QUIET on
\pset linestyle unicode
\pset border 2
\pset footer off
SELECT h.revision, h.device, h.outcome, CASE WHEN h.is_head THEN 'head' ELSE '' END AS head, b.board,
       CASE WHEN (h.state->>'didPlayerWin')::boolean THEN 'won' ELSE 'row ' || (h.state->>'currentRow') END AS play
  FROM history AS h
 CROSS JOIN LATERAL (
       SELECT string_agg(r.marks || ' ' || r.guess, E'\n' ORDER BY r.place) AS board
         FROM (SELECT row.place,
                      string_agg(CASE key->>'mark' WHEN 'rightPlace' THEN '🟩' WHEN 'wrongPlace' THEN '🟨'
                                                   WHEN 'absent' THEN '⬛' ELSE '⬜' END, '' ORDER BY k.place) AS marks,
                      string_agg(key->>'jamo', '' ORDER BY k.place) AS guess
                 FROM json_array_elements(h.state->'answerBoard') WITH ORDINALITY AS row (keys, place),
                      json_array_elements(row.keys) WITH ORDINALITY AS k (key, place)
                GROUP BY row.place
               HAVING string_agg(key->>'jamo', '') <> '') AS r) AS b
 WHERE h.collection = 'handle.game' AND h.state IS NOT NULL
 ORDER BY h.player_id, h.revision;
