-- Rewrites push_batch() for a database that is distributed by player_id (Citus), where every statement must name its
-- players: run it with psql after the tables were distributed, and again after a migration that replaced push_batch().
--
-- The rule stays one text. The places that differ are marked in it: what "distributed:" hides in comments comes out,
-- and the pushes are drawn through players. The usual pushes are not written apart there, but decided like all. A test
-- runs the rewritten function against the same model as the plain one, on plain PostgreSQL. A batch then holds the
-- players of one shard, and its shard_key is any of them.
DO $rewrite$
DECLARE
    plain CONSTANT text := 'FROM (SELECT k, players_in[k] AS player_id FROM generate_series(1, pushes) AS k) AS i';
    drawn CONSTANT text := 'FROM (SELECT j.k, p.player_id FROM players AS p'
        ' JOIN (SELECT k, players_in[k] AS player_id FROM generate_series(1, pushes) AS k) AS j'
        ' ON j.player_id = p.player_id WHERE p.player_id = ANY (players_in)) AS i';
    target CONSTANT regprocedure :=
        'push_batch(uuid,uuid[],uuid[],text[],text[],timestamptz[],bigint[],integer[],json[],timestamptz,boolean[])';
    body text := pg_get_functiondef(target);
BEGIN
    IF strpos(body, drawn) > 0 THEN
        RAISE NOTICE 'push_batch is rewritten already';
        RETURN;
    END IF;
    IF strpos(body, plain) = 0 OR strpos(body, '/* distributed: ') = 0 THEN
        RAISE EXCEPTION 'push_batch has another form than this script knows';
    END IF;
    body := replace(body, plain, drawn);
    body := regexp_replace(body, '/\* distributed: (.*?) \*/', '\1', 'g');
    EXECUTE body;
    -- The draw is the one join: by hash, since a nested loop over a batch would cost its square.
    EXECUTE format('ALTER FUNCTION %s SET enable_hashjoin = on', target);
    EXECUTE format('ALTER FUNCTION %s SET enable_nestloop = off', target);
END
$rewrite$;
