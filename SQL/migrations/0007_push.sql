-- 0007_push.sql: the same push rule for less. Documentation/conflicts.md tells it to people.
-- Locks: SHARE UPDATE EXCLUSIVE on game_versions_saved_idx for an instant: reads and writes go on.
-- Older daemons go on too: they call push(), which answers as before.
--
-- push_batch() takes the place of push() for daemons. It takes the same arrays, answers with one row of arrays, and
-- writes the usual push at once. push() is kept for older daemons, recipes and people: the same answers, row by row.
--
-- The usual push is made by a valid device, is later than all versions of its game, and has the head as its base. By
-- the rule it advances: what stands above that row, refusing a device or a time and telling a repeat, is ruled out by
-- just these conditions. So one statement finds it, moves the head and adds the version (2). What is left over is
-- decided in full (3 to 6), as in 0004; on a distributed database everything is. Tests compare both with one model.
--
-- What 0004 says of plans, subscripts, foreign keys and the lock holds here too. The shape was chosen by measurement
-- again (callgrind on a backend that gets binary parameters; user instructions a row in batches of 250 that advance,
-- 1.1 KB states, tables of 10,240 games and 40,000 versions):
--   * 178,600 before, 154,000 now. Of both, 56,500 receive the arrays; 46,000 of these check that the states are JSON.
--   * Locking: 20,900, was 24,200. One statement gathers what it locked, not a loop of PL/pgSQL; that the players came
--     in order, once each, is seen from what was locked. The foreign key of devices takes 2,200 of it, the check 1,100.
--   * Deciding and writing: 73,500, was 86,500. The game's row is found once and changed there and then.
--   * Answering: 3,000, was 11,400. Arrays of what is not NULL, where it was 13 columns for each push.
--   * "= ANY (ARRAY[...])" finds the game's row. "=" would let the tables be joined in the other order while they are
--     small, and that plan would stay; BETWEEN would read all games of the player; comparing rows costs 14,000 more.
--   * Handing a push's texts from statement to statement, rather than reading the arrays again, costs 600 more.
--   * A push that is left over has paid about 14,000 for the attempt; nothing where its base is 0 or none.
--   * No two versions share a key of the index for repeated saves: looking for some to join costs 400.

CREATE FUNCTION push_batch(
    shard_key uuid, players_in uuid[], devices_in uuid[], collections_in text[], games_in text[],
    saved_in timestamptz[], bases_in bigint[], schemas_in integer[], states_in json[],
    arrived timestamptz DEFAULT clock_timestamp(), verified_in boolean[] DEFAULT NULL,
    OUT outcomes text[], OUT firsts text[], OUT revisions bigint[], OUT stamps timestamptz[], OUT rivals bigint[],
    OUT losers integer[], OUT head_revisions bigint[], OUT head_saves timestamptz[], OUT head_stamps timestamptz[],
    OUT head_devices uuid[], OUT head_schemas integer[], OUT head_states json[])
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_hashagg = off
SET enable_sort = off
SET jit = off
AS $push$
#variable_conflict use_column
DECLARE
    accepted CONSTANT text[] := ARRAY['advanced', 'created', 'won', 'lost'];
    latest   CONSTANT timestamptz := arrived + interval '5 seconds';   -- a clock that runs ahead counts no further
    total    CONSTANT integer := cardinality(players_in);
    pushes    integer := total;  -- those that are still to be decided
    known     uuid[];            -- the players that exist, each once, ascending
    lasts     bigint[];          -- their last revisions, with a number reserved for each push
    settled   integer[];         -- places of the usual pushes in the batch, ascending: these are written
    settled_revisions bigint[];
    settled_stamps    timestamptz[];
    strangers integer[];         -- places of the pushes of unknown players
    ordinals  integer[];         -- places of the other pushes, where some were taken out
    earlier   bigint[];          -- repeated pushes: the revision of the first time; of saved-reused, too
    places    tid[];             -- where the game's row in games is
    written   integer;
BEGIN
    IF total = 0 THEN
        RETURN;
    END IF;
    IF (cardinality(devices_in), cardinality(collections_in), cardinality(games_in), cardinality(saved_in),
        cardinality(bases_in), cardinality(schemas_in), cardinality(states_in))
       IS DISTINCT FROM (total, total, total, total, total, total, total) THEN
        RAISE EXCEPTION 'the arrays of a batch must be equally long' USING ERRCODE = 'array_subscript_error';
    END IF;

    -- 1. Lock the players in the order of their ids, so that two daemons cannot deadlock, and reserve the numbers.
    WITH l AS (
        UPDATE players AS p SET last_revision = p.last_revision + 1
         WHERE p.player_id = ANY (players_in)
        RETURNING p.player_id, p.last_revision)
    SELECT array_agg(l.player_id), array_agg(l.last_revision) INTO known, lasts FROM l;

    IF known = players_in THEN   -- the usual batch: the players come in ascending order, each with one push
        -- 2. Write the usual pushes, by a later snapshot than the lock's.
        IF true /* distributed: AND false */ THEN
            WITH heads AS (
                UPDATE games AS g
                   SET head_revision = lasts[i.k], saved = i.saved, device_id = devices_in[i.k], latest_saved = i.saved,
                       stamp = greatest(least(i.saved, latest), g.stamp + interval '1 microsecond')
                  FROM (SELECT k, players_in[k] AS player_id, saved_in[k] AS saved, bases_in[k] AS base
                          FROM (SELECT generate_series(1, total) AS k) AS j
                        OFFSET 0) AS i   -- so that each array is read once
                 WHERE g.player_id = ANY (ARRAY[i.player_id]) AND g.collection = collections_in[i.k]
                   AND g.game_id = games_in[i.k]
                   AND i.base > 0 AND g.head_revision = i.base
                   AND i.saved < '10000-01-01 00:00Z' AND g.latest_saved < i.saved
                   AND (verified_in[i.k]
                        OR (SELECT d.revoked IS NULL FROM devices AS d
                             WHERE d.player_id = i.player_id AND d.device_id = devices_in[i.k]))
                RETURNING i.k, g.player_id, g.head_revision, g.device_id, g.saved, g.stamp, i.base),
            versions AS (
                INSERT INTO game_versions (player_id, revision, device_id, saved, stamp, received, base, schema, size,
                                           collection, game_id, outcome, state)
                SELECT h.player_id, h.head_revision, h.device_id, h.saved, h.stamp, arrived, h.base,
                       schemas_in[h.k], coalesce(octet_length(states_in[h.k]::text), 0), collections_in[h.k],
                       games_in[h.k], 'advanced', states_in[h.k]
                  FROM heads AS h)
            SELECT array_agg(h.k), array_agg(h.stamp) INTO settled, settled_stamps FROM heads AS h;
        END IF;
        IF cardinality(settled) = total THEN   -- all advanced
            revisions := lasts;
            stamps := settled_stamps;
            RETURN;
        END IF;
        IF settled IS NOT NULL THEN
            SELECT array_agg(k ORDER BY k) FILTER (WHERE NOT is_settled),
                   array_agg(lasts[k] ORDER BY k) FILTER (WHERE NOT is_settled),
                   array_agg(lasts[k] ORDER BY k) FILTER (WHERE is_settled)
              INTO ordinals, lasts, settled_revisions
              FROM (SELECT k, coalesce(settled[width_bucket(k, settled)] = k, false) AS is_settled
                      FROM generate_series(1, total) AS k) AS i;
        END IF;
    ELSE
        IF EXISTS (SELECT FROM unnest(players_in, collections_in, games_in) AS i (player_id, collection, game_id)
                    GROUP BY i.player_id, i.collection, i.game_id HAVING count(*) > 1) THEN
            RAISE EXCEPTION 'a batch holds at most one push of a game' USING ERRCODE = 'cardinality_violation';
        END IF;
        WITH l AS (   -- numbers for the players' other pushes
            UPDATE players AS p SET last_revision = p.last_revision + i.others
              FROM (SELECT u.player_id, count(*) - 1 AS others FROM unnest(players_in) AS u (player_id)
                     GROUP BY u.player_id HAVING count(*) > 1 ORDER BY u.player_id) AS i
             WHERE p.player_id BETWEEN i.player_id AND i.player_id   -- not "=": that could be joined in another order
                   /* distributed: AND p.player_id = ANY (players_in) */
            RETURNING p.player_id, p.last_revision)
        SELECT array_agg(m.player_id ORDER BY m.player_id), array_agg(m.last_revision ORDER BY m.player_id)
          INTO known, lasts
          FROM (SELECT a.player_id, max(a.last_revision) AS last_revision
                  FROM (SELECT l.player_id, l.last_revision FROM l
                         UNION ALL
                        SELECT u.player_id, u.last_revision
                          FROM unnest(known, lasts) AS u (player_id, last_revision)) AS a
                 GROUP BY a.player_id) AS m;
        SELECT array_agg(k ORDER BY k) FILTER (WHERE NOT is_known), array_agg(k ORDER BY k) FILTER (WHERE is_known)
          INTO strangers, ordinals
          FROM (SELECT k, known[width_bucket(players_in[k], known)] IS NOT DISTINCT FROM players_in[k]
                          AND players_in[k] IS NOT NULL AS is_known
                  FROM generate_series(1, total) AS k) AS i;
    END IF;

    -- What is written, and pushes of unknown players, are taken out here and answered at the end.
    IF settled IS NOT NULL OR strangers IS NOT NULL THEN
        SELECT array_agg(players_in[k] ORDER BY k), array_agg(devices_in[k] ORDER BY k),
               array_agg(collections_in[k] ORDER BY k), array_agg(games_in[k] ORDER BY k),
               array_agg(saved_in[k] ORDER BY k), array_agg(bases_in[k] ORDER BY k),
               array_agg(schemas_in[k] ORDER BY k), array_agg(states_in[k] ORDER BY k),
               array_agg(verified_in[k] ORDER BY k)
          INTO players_in, devices_in, collections_in, games_in, saved_in, bases_in, schemas_in, states_in, verified_in
          FROM unnest(ordinals) AS k;
        pushes := coalesce(cardinality(players_in), 0);
    END IF;
    IF settled IS NOT NULL THEN
        known := players_in;
    END IF;

    IF pushes > 0 THEN
        -- 3. Decide, by a later snapshot than the lock's. The order of the conditions is the order of the rule.
        SELECT array_agg(o.outcome), array_agg(o.place),
               array_agg(CASE o.outcome WHEN 'repeated' THEN o.first_outcome END),
               array_agg(CASE o.outcome WHEN 'repeated' THEN o.first_revision WHEN 'saved-reused' THEN o.first_revision END),
               array_agg(CASE o.outcome WHEN 'repeated' THEN o.first_stamp ELSE o.stamp END),
               array_agg(CASE o.outcome WHEN 'repeated' THEN o.first_rival
                                        WHEN 'won' THEN o.head_revision WHEN 'lost' THEN o.head_revision END)
          INTO outcomes, places, firsts, earlier, stamps, rivals
          FROM (SELECT g.place, g.head_revision, s.stamp, r.outcome AS first_outcome, r.revision AS first_revision,
                       r.stamp AS first_stamp, r.rival AS first_rival,
                       CASE WHEN d.device_id IS NULL AND verified_in[i.k] IS NOT TRUE THEN 'unknown-device'
                            WHEN saved_in[i.k] < '0001-01-01 00:00Z' OR saved_in[i.k] >= '10000-01-01 00:00Z'
                                THEN 'saved-out-of-range'
                            WHEN r.revision IS NOT NULL THEN
                                CASE WHEN states_in[i.k]::text COLLATE "C" IS NOT DISTINCT FROM r.state::text COLLATE "C"
                                     THEN 'repeated' ELSE 'saved-reused' END
                            WHEN bases_in[i.k] = g.head_revision THEN 'advanced'
                            WHEN b.same_game IS FALSE THEN 'base-mismatch'
                            WHEN g.head_revision IS NULL THEN
                                CASE WHEN octet_length(collections_in[i.k]) BETWEEN 1 AND 255
                                      AND octet_length(games_in[i.k]) BETWEEN 1 AND 255
                                      AND collections_in[i.k] IS NFC NORMALIZED AND games_in[i.k] IS NFC NORMALIZED
                                     THEN 'created' ELSE 'invalid-id' END
                            WHEN bases_in[i.k] = 0 THEN 'lost'
                            WHEN (s.stamp, saved_in[i.k], devices_in[i.k]) > (g.stamp, g.saved, g.device_id) THEN 'won'
                            ELSE 'lost' END AS outcome
                  FROM (SELECT k, players_in[k] AS player_id FROM generate_series(1, pushes) AS k) AS i
                  LEFT JOIN LATERAL (
                       SELECT d.device_id FROM devices AS d
                        WHERE verified_in[i.k] IS NOT TRUE
                          AND d.player_id = i.player_id AND d.device_id = devices_in[i.k] AND d.revoked IS NULL
                       OFFSET 0) AS d ON true
                  LEFT JOIN LATERAL (
                       SELECT g.ctid AS place, g.head_revision, g.stamp, g.saved, g.device_id, g.latest_saved
                         FROM games AS g
                        WHERE g.player_id = i.player_id AND g.collection = collections_in[i.k]
                          AND g.game_id = games_in[i.k]
                       OFFSET 0) AS g ON true
                  LEFT JOIN LATERAL (
                       SELECT r.revision, r.outcome, r.stamp, r.rival, r.state FROM game_versions AS r
                        WHERE saved_in[i.k] <= g.latest_saved   -- else it can repeat none, and the index is spared
                          AND r.player_id = i.player_id AND r.game_id = games_in[i.k]
                          AND r.saved BETWEEN saved_in[i.k] AND saved_in[i.k]
                          AND r.device_id = devices_in[i.k] AND r.collection = collections_in[i.k]
                        ORDER BY r.saved
                       OFFSET 0) AS r ON true
                 CROSS JOIN LATERAL (   -- the base, unless it is the head, whose stamp is known already
                       SELECT CASE WHEN bases_in[i.k] IS DISTINCT FROM g.head_revision THEN bases_in[i.k] END AS base) AS n
                  LEFT JOIN LATERAL (
                       SELECT b.stamp, b.collection = collections_in[i.k] AND b.game_id = games_in[i.k] AS same_game
                         FROM game_versions AS b
                        WHERE n.base IS NOT NULL AND b.player_id = i.player_id
                          AND b.revision BETWEEN n.base AND n.base
                        ORDER BY b.revision
                       OFFSET 0) AS b ON true
                 CROSS JOIN LATERAL (
                       SELECT greatest(least(saved_in[i.k], latest),
                                       CASE WHEN bases_in[i.k] = g.head_revision THEN g.stamp
                                            WHEN b.same_game THEN b.stamp END + interval '1 microsecond') AS stamp) AS s
                 /* distributed: ORDER BY i.k */
                OFFSET 0) AS o;

        -- 4. Number. Where pushes are refused or repeated, those behind them move up and the surplus is given back.
        IF known = players_in AND outcomes <@ accepted THEN
            revisions := lasts;
        ELSE
            SELECT array_agg(CASE WHEN n.outcome = ANY (accepted) THEN n.last - n.pushes + n.rank ELSE earlier[n.k] END
                             ORDER BY n.k),
                   array_agg(CASE WHEN n.outcome = ANY (accepted) OR n.outcome = 'repeated' THEN stamps[n.k] END
                             ORDER BY n.k)
              INTO revisions, stamps
              FROM (SELECT m.k, m.outcome, lasts[width_bucket(m.player_id, known)] AS last,
                           count(*) OVER (PARTITION BY m.player_id) AS pushes,
                           count(*) FILTER (WHERE m.outcome = ANY (accepted))
                               OVER (PARTITION BY m.player_id ORDER BY m.k) AS rank
                      FROM (SELECT k, players_in[k] AS player_id, outcomes[k] AS outcome
                              FROM generate_series(1, pushes) AS k) AS m) AS n;
            UPDATE players AS p SET last_revision = p.last_revision - i.surplus
              FROM (SELECT players_in[k] AS player_id, count(*) AS surplus FROM generate_series(1, pushes) AS k
                     WHERE outcomes[k] <> ALL (accepted) GROUP BY players_in[k]) AS i
             WHERE p.player_id BETWEEN i.player_id AND i.player_id
                   /* distributed: AND p.player_id = ANY (players_in) */;
        END IF;

        -- 5. Write the versions and the heads.
        INSERT INTO game_versions (player_id, revision, device_id, saved, stamp, received, base, rival, schema, size,
                                   collection, game_id, outcome, state)
        SELECT i.player_id, revisions[i.k], devices_in[i.k], saved_in[i.k], stamps[i.k], arrived,
               CASE WHEN bases_in[i.k] >= 0 THEN bases_in[i.k] END, rivals[i.k], schemas_in[i.k],
               coalesce(octet_length(states_in[i.k]::text), 0), collections_in[i.k], games_in[i.k], outcomes[i.k],
               states_in[i.k]
          FROM (SELECT k, players_in[k] AS player_id FROM generate_series(1, pushes) AS k) AS i
         WHERE outcomes[i.k] IN ('advanced', 'created', 'won', 'lost');

        UPDATE games AS g
           SET head_revision = revisions[i.k], stamp = stamps[i.k], saved = saved_in[i.k], device_id = devices_in[i.k],
               latest_saved = greatest(g.latest_saved, saved_in[i.k])
          FROM (SELECT k, players_in[k] AS player_id FROM generate_series(1, pushes) AS k) AS i
         WHERE outcomes[i.k] IN ('advanced', 'won') AND g.ctid = places[i.k]
               /* distributed: AND g.player_id = i.player_id */;
        GET DIAGNOSTICS written = ROW_COUNT;
        IF written <> (SELECT count(*) FROM unnest(outcomes) AS o WHERE o IN ('advanced', 'won')) THEN
            RAISE EXCEPTION 'games were written without the lock of their player'
                USING ERRCODE = 'serialization_failure', HINT = 'Push the batch again.';
        END IF;
        IF 'created' = ANY (outcomes) THEN
            INSERT INTO games (player_id, collection, game_id, head_revision, stamp, saved, device_id, latest_saved)
            SELECT i.player_id, collections_in[i.k], games_in[i.k], revisions[i.k], stamps[i.k], saved_in[i.k],
                   devices_in[i.k], saved_in[i.k]
              FROM (SELECT k, players_in[k] AS player_id FROM generate_series(1, pushes) AS k) AS i
             WHERE outcomes[i.k] = 'created';
        END IF;

        IF 'lost' = ANY (outcomes) THEN
            UPDATE games AS g SET latest_saved = saved_in[i.k]
              FROM (SELECT k, players_in[k] AS player_id FROM generate_series(1, pushes) AS k) AS i
             WHERE outcomes[i.k] = 'lost' AND g.ctid = places[i.k] AND g.latest_saved < saved_in[i.k]
                   /* distributed: AND g.player_id = i.player_id */;
        END IF;

        -- 6. Fetch the heads for those that lost, now or the first time.
        IF 'lost' = ANY (outcomes) OR coalesce('lost' = ANY (firsts), false) THEN
            SELECT array_agg(i.k), array_agg(v.revision), array_agg(v.saved), array_agg(v.stamp),
                   array_agg(v.device_id), array_agg(v.schema), array_agg(v.state)
              INTO losers, head_revisions, head_saves, head_stamps, head_devices, head_schemas, head_states
              FROM (SELECT k, players_in[k] AS player_id FROM generate_series(1, pushes) AS k) AS i
             CROSS JOIN LATERAL (
                   SELECT g.head_revision FROM games AS g
                    WHERE g.player_id = i.player_id AND g.collection = collections_in[i.k] AND g.game_id = games_in[i.k]
                   OFFSET 0) AS g
             CROSS JOIN LATERAL (
                   SELECT v.revision, v.saved, v.stamp, v.device_id, v.schema, v.state FROM game_versions AS v
                    WHERE v.player_id = i.player_id AND v.revision BETWEEN g.head_revision AND g.head_revision
                    ORDER BY v.revision
                   OFFSET 0) AS v
             WHERE 'lost' IN (outcomes[i.k], firsts[i.k]);
        END IF;
    END IF;

    -- 7. Put the answers in the places where the pushes came.
    IF pushes < total THEN
        SELECT array_agg(CASE WHEN i.o > 0 THEN outcomes[i.o] WHEN i.s > 0 THEN 'advanced' ELSE 'unknown-player' END
                         ORDER BY i.k),
               array_agg(firsts[i.o] ORDER BY i.k),
               array_agg(CASE WHEN i.o > 0 THEN revisions[i.o] ELSE settled_revisions[i.s] END ORDER BY i.k),
               array_agg(CASE WHEN i.o > 0 THEN stamps[i.o] ELSE settled_stamps[i.s] END ORDER BY i.k),
               array_agg(rivals[i.o] ORDER BY i.k)
          INTO outcomes, firsts, revisions, stamps, rivals
          FROM (SELECT k, array_position(ordinals, k) AS o, array_position(settled, k) AS s
                  FROM generate_series(1, total) AS k) AS i;
        SELECT array_agg(ordinals[u.at] ORDER BY u.n) INTO losers FROM unnest(losers) WITH ORDINALITY AS u (at, n);
    END IF;
END
$push$;
COMMENT ON FUNCTION push_batch(uuid, uuid[], uuid[], text[], text[], timestamptz[], bigint[], integer[], json[], timestamptz, boolean[]) IS
    'Pushes a batch of saves, at most one of a game, best sorted by player. Answers with arrays in their order: outcomes created, advanced, won or lost; repeated (firsts tells more); or refused: unknown-player, unknown-device, saved-out-of-range, saved-reused (revisions tells which), base-mismatch, invalid-id. Where outcomes is NULL, all advanced; where firsts or rivals is NULL, there are none. losers are the places of the pushes, from 1, that are told the head, which is in the head_ arrays behind it. A state of NULL deletes, a base of NULL is none. verified_in says of which pushes the device was found valid a moment ago, so that it is not looked up again; NULL: of none. shard_key is any of the players; it routes the call on a distributed database.';

CREATE OR REPLACE FUNCTION push(
    shard_key uuid, players_in uuid[], devices_in uuid[], collections_in text[], games_in text[],
    saved_in timestamptz[], bases_in bigint[], schemas_in integer[], states_in json[],
    arrived timestamptz DEFAULT clock_timestamp(), verified_in boolean[] DEFAULT NULL)
RETURNS TABLE (
    ordinal integer, outcome text, first_outcome text, revision bigint, stamp timestamptz, rival bigint,
    head_revision bigint, head_saved timestamptz, head_stamp timestamptz, head_device uuid, head_schema integer,
    head_state json, head_deleted boolean)
LANGUAGE plpgsql AS $push$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT k, coalesce(b.outcomes[k], 'advanced'), b.firsts[k], b.revisions[k], b.stamps[k], b.rivals[k],
           b.head_revisions[i.h], b.head_saves[i.h], b.head_stamps[i.h], b.head_devices[i.h], b.head_schemas[i.h],
           b.head_states[i.h], CASE WHEN i.h IS NOT NULL THEN b.head_states[i.h] IS NULL END
      FROM push_batch(shard_key, players_in, devices_in, collections_in, games_in, saved_in, bases_in, schemas_in,
                      states_in, arrived, verified_in) AS b
     CROSS JOIN LATERAL generate_series(1, cardinality(b.revisions)) AS k
     CROSS JOIN LATERAL (SELECT array_position(b.losers, k) AS h) AS i;
END
$push$;
COMMENT ON FUNCTION push(uuid, uuid[], uuid[], text[], text[], timestamptz[], bigint[], integer[], json[], timestamptz, boolean[]) IS
    'push_batch() with its answers as rows, one a push, in their order; head_deleted says that the head is a tombstone.';

ALTER INDEX game_versions_saved_idx SET (deduplicate_items = off);
