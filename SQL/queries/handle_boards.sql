-- handle_boards.sql: How did one game of 한들 go: its board, version by version?
-- Variables: player: whose (needed); game: which (needed).
-- Example: ieumd psql -f SQL/queries/handle_boards.sql -v player=ID -v game=ID
\if :{?player}
\else
\set ON_ERROR_STOP on
DO $$ BEGIN RAISE EXCEPTION 'this question needs a player' USING HINT = 'Add -v player=ID; TABLE player_summary lists them.'; END $$;
\endif
\if :{?game}
\else
\set ON_ERROR_STOP on
DO $$ BEGIN RAISE EXCEPTION 'this question needs a game' USING HINT = 'Add -v game=ID; games.sql lists them.'; END $$;
\endif
\pset linestyle unicode
\pset border 2
SELECT h.revision, h.device, h.outcome, CASE WHEN h.is_head THEN 'head' ELSE '' END AS head,
       handle_board(g.answer_board, true) AS board, g.current_row AS row, g.current_column AS "column",
       CASE WHEN g.did_win THEN 'won' WHEN g.is_finished THEN 'lost' ELSE coalesce(g.problem, 'goes on') END AS play
  FROM history AS h
 CROSS JOIN LATERAL handle_game(h.state) AS g
 WHERE h.player_id = :'player' AND h.collection = 'handle.game' AND h.game_id = :'game'
 ORDER BY h.revision;
