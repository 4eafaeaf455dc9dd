-- 0004_push.sql: the push rule, in one place.
-- Locks: none (a new function). Older daemons: there are none.
CREATE FUNCTION push(
    shard_key uuid, players_in uuid[], devices_in uuid[], collections_in text[], games_in text[],
    saved_in timestamptz[], bases_in bigint[], schemas_in integer[], states_in json[],
    arrived timestamptz DEFAULT clock_timestamp())
RETURNS TABLE (
    ordinal integer, outcome text, first_outcome text, revision bigint, stamp timestamptz, rival bigint,
    head_revision bigint, head_saved timestamptz, head_stamp timestamptz, head_device uuid, head_schema integer,
    head_state json, head_deleted boolean)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_mergejoin = off
AS $push$
#variable_conflict use_column
DECLARE
    pushes         integer := cardinality(players_in);
    players_locked integer;
    heads_written  integer;
    latest         timestamptz := arrived + interval '5 seconds';
    found_at       integer[];
    outcomes       text[];
    firsts         text[];
    revisions      bigint[];
    stamps         timestamptz[];
    rivals         bigint[];
BEGIN
    IF pushes = 0 THEN
        RETURN;
    END IF;
    IF cardinality(devices_in) <> pushes OR cardinality(collections_in) <> pushes OR cardinality(games_in) <> pushes
        OR cardinality(saved_in) <> pushes OR cardinality(bases_in) <> pushes OR cardinality(schemas_in) <> pushes
        OR cardinality(states_in) <> pushes THEN
        RAISE EXCEPTION 'the arrays of a batch must be equally long' USING ERRCODE = 'array_subscript_error';
    END IF;

    -- 1. Lock the players, in the order of their ids so that two daemons cannot deadlock, and reserve their numbers.
    UPDATE players p SET last_revision = p.last_revision + l.pushes
      FROM (SELECT q.player_id, i.pushes
              FROM players q
              JOIN (SELECT u.player_id, count(*) AS pushes FROM unnest(players_in) AS u (player_id)
                     GROUP BY u.player_id) AS i ON i.player_id = q.player_id
             WHERE q.player_id = ANY (players_in)
             ORDER BY q.player_id FOR UPDATE OF q) AS l
     WHERE p.player_id = l.player_id AND p.player_id = ANY (players_in);
    GET DIAGNOSTICS players_locked = ROW_COUNT;

    IF players_locked < pushes AND EXISTS (
        SELECT FROM unnest(players_in, collections_in, games_in) AS i (player_id, collection, game_id)
         GROUP BY i.player_id, i.collection, i.game_id HAVING count(*) > 1) THEN
        RAISE EXCEPTION 'a batch holds at most one push of a game' USING ERRCODE = 'cardinality_violation';
    END IF;

    -- 2. Decide, by a later snapshot than the lock's.
    SELECT array_agg(n.ordinal), array_agg(n.outcome), array_agg(n.first_outcome), array_agg(n.revision),
           array_agg(n.stamp), array_agg(n.rival)
      INTO found_at, outcomes, firsts, revisions, stamps, rivals
      FROM (SELECT o.ordinal, o.outcome, o.first_outcome, o.stamp, o.rival,
                   coalesce(o.revision,
                            o.last_revision - count(*) OVER (PARTITION BY o.player_id)
                            + count(*) FILTER (WHERE o.outcome IN ('created', 'advanced', 'won', 'lost'))
                              OVER (PARTITION BY o.player_id ORDER BY o.ordinal)) AS revision
              FROM (SELECT j.ordinal, j.player_id, j.last_revision,
                           CASE WHEN j.outcome = 'repeated' THEN j.first_revision END AS revision,
                           j.outcome,
                           CASE WHEN j.outcome = 'repeated' THEN j.first_outcome END AS first_outcome,
                           CASE WHEN j.outcome = 'repeated' THEN j.first_stamp ELSE j.stamp END AS stamp,
                           CASE WHEN j.outcome = 'repeated' THEN j.first_rival
                                WHEN j.outcome IN ('won', 'lost') THEN j.head_revision END AS rival
                      FROM (SELECT i.ordinal, p.player_id, p.last_revision, g.head_revision,
                                   r.revision AS first_revision, r.outcome AS first_outcome,
                                   r.stamp AS first_stamp, r.rival AS first_rival, s.stamp,
                                   CASE WHEN d.device_id IS NULL THEN 'unknown-device'
                                        WHEN i.saved >= '0001-01-01 00:00Z' AND i.saved < '10000-01-01 00:00Z' THEN
                                            CASE WHEN r.revision IS NOT NULL THEN
                                                 CASE WHEN states_in[i.ordinal]::text COLLATE "C"
                                                           IS NOT DISTINCT FROM r.state::text COLLATE "C"
                                                      THEN 'repeated' ELSE 'saved-reused' END
                                            WHEN i.base = g.head_revision THEN 'advanced'
                                            WHEN b.game_id IS NOT NULL AND NOT s.base_is_same THEN 'base-mismatch'
                                            WHEN g.head_revision IS NULL THEN
                                                 CASE WHEN octet_length(i.collection) BETWEEN 1 AND 255
                                                       AND octet_length(i.game_id) BETWEEN 1 AND 255
                                                       AND i.collection IS NFC NORMALIZED AND i.game_id IS NFC NORMALIZED
                                                      THEN 'created' ELSE 'invalid-id' END
                                            WHEN i.base = 0 THEN 'lost'
                                            WHEN (s.stamp, i.saved, i.device_id) > (g.stamp, g.saved, g.device_id) THEN 'won'
                                            ELSE 'lost' END
                                        ELSE 'saved-out-of-range' END AS outcome
                              FROM players p
                              JOIN unnest(players_in, devices_in, collections_in, games_in, saved_in, bases_in)
                                   WITH ORDINALITY AS i (player_id, device_id, collection, game_id, saved, base, ordinal)
                                   ON i.player_id = p.player_id
                              LEFT JOIN LATERAL (SELECT * FROM devices d
                                    WHERE d.player_id = p.player_id AND d.device_id = i.device_id AND d.revoked IS NULL
                                    OFFSET 0) AS d ON true
                              LEFT JOIN LATERAL (SELECT * FROM games g
                                    WHERE g.player_id = p.player_id AND g.collection = i.collection
                                      AND g.game_id = i.game_id
                                    OFFSET 0) AS g ON true
                              LEFT JOIN LATERAL (SELECT * FROM game_versions r
                                    WHERE r.player_id = p.player_id AND r.game_id = i.game_id AND r.saved = i.saved
                                      AND r.device_id = i.device_id AND r.collection = i.collection
                                    OFFSET 0) AS r ON true
                              LEFT JOIN LATERAL (SELECT * FROM game_versions b
                                    WHERE b.player_id = p.player_id
                                      AND b.revision = CASE WHEN i.base IS DISTINCT FROM g.head_revision THEN i.base END
                                    OFFSET 0) AS b ON true
                              CROSS JOIN LATERAL (
                                    SELECT b.collection = i.collection AND b.game_id = i.game_id AS base_is_same,
                                           greatest(least(i.saved, latest),
                                                    CASE WHEN i.base = g.head_revision THEN g.stamp
                                                         WHEN b.collection = i.collection AND b.game_id = i.game_id THEN b.stamp
                                                    END + interval '1 microsecond') AS stamp) AS s
                             WHERE p.player_id = ANY (players_in)) AS j) AS o
             ORDER BY o.ordinal) AS n;
    IF cardinality(found_at) IS DISTINCT FROM pushes THEN
        -- Some players are unknown: put the rows that were found back into their places.
        SELECT array_agg(coalesce(f.outcome, 'unknown-player') ORDER BY i), array_agg(f.first ORDER BY i),
               array_agg(f.revision ORDER BY i), array_agg(f.stamp ORDER BY i), array_agg(f.rival ORDER BY i)
          INTO outcomes, firsts, revisions, stamps, rivals
          FROM generate_series(1, pushes) AS i
          LEFT JOIN unnest(found_at, outcomes, firsts, revisions, stamps, rivals)
               AS f (at, outcome, first, revision, stamp, rival) ON f.at = i;
    END IF;

    -- 3. Write. The leading column comes from players, so that a distributed database sees where the rows go.
    INSERT INTO game_versions (player_id, revision, device_id, saved, stamp, received, base, rival, schema, size,
                               collection, game_id, outcome, state)
    SELECT p.player_id, i.revision, i.device_id, i.saved, i.stamp, arrived, CASE WHEN i.base >= 0 THEN i.base END, i.rival, i.schema,
           coalesce(octet_length(i.state::text), 0), i.collection, i.game_id, i.outcome, i.state
      FROM players p
      JOIN unnest(players_in, devices_in, collections_in, games_in, saved_in, bases_in, schemas_in, states_in,
                  outcomes, stamps, revisions, rivals)
           AS i (player_id, device_id, collection, game_id, saved, base, schema, state, outcome, stamp, revision, rival)
           ON i.player_id = p.player_id
     WHERE p.player_id = ANY (players_in) AND i.outcome IN ('created', 'advanced', 'won', 'lost');

    INSERT INTO games AS g (player_id, collection, game_id, head_revision, stamp, saved, device_id)
    SELECT p.player_id, i.collection, i.game_id, i.revision, i.stamp, i.saved, i.device_id
      FROM players p
      JOIN unnest(players_in, collections_in, games_in, outcomes, revisions, stamps, saved_in, devices_in)
           AS i (player_id, collection, game_id, outcome, revision, stamp, saved, device_id) ON i.player_id = p.player_id
     WHERE p.player_id = ANY (players_in) AND i.outcome IN ('created', 'advanced', 'won')
    ON CONFLICT (player_id, collection, game_id) DO UPDATE
       SET head_revision = excluded.head_revision, stamp = excluded.stamp, saved = excluded.saved,
           device_id = excluded.device_id;

    -- 4. Give back the numbers of the pushes that took none.
    IF outcomes && ARRAY['repeated', 'base-mismatch', 'saved-reused', 'unknown-device', 'saved-out-of-range', 'invalid-id'] THEN
        UPDATE players p SET last_revision = p.last_revision - c.surplus
          FROM (SELECT i.player_id, count(*) AS surplus FROM unnest(players_in, outcomes) AS i (player_id, outcome)
                 WHERE i.outcome NOT IN ('created', 'advanced', 'won', 'lost') GROUP BY i.player_id) AS c
         WHERE p.player_id = c.player_id AND p.player_id = ANY (players_in);
    END IF;

    RETURN QUERY
    SELECT i.ordinal::integer, i.outcome, i.first_outcome,
           CASE WHEN i.outcome IN ('created', 'advanced', 'won', 'lost', 'repeated') THEN i.revision END,
           CASE WHEN i.outcome IN ('created', 'advanced', 'won', 'lost', 'repeated') THEN i.stamp END, i.rival,
           h.revision, h.saved, h.stamp, h.device_id, h.schema, h.state, h.revision IS NOT NULL AND h.state IS NULL
      FROM unnest(outcomes, firsts, revisions, stamps, rivals) WITH ORDINALITY
           AS i (outcome, first_outcome, revision, stamp, rival, ordinal)
      LEFT JOIN LATERAL (
           SELECT v.* FROM games g
             JOIN game_versions v ON v.player_id = g.player_id AND v.revision = g.head_revision
            WHERE 'lost' IN (i.outcome, i.first_outcome) AND g.player_id = players_in[i.ordinal]
              AND g.collection = collections_in[i.ordinal] AND g.game_id = games_in[i.ordinal]
           OFFSET 0) AS h ON true
     ORDER BY i.ordinal;
END
$push$;
