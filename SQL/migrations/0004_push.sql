-- 0004_push.sql: the push rule, in one place. Documentation/conflicts.md tells it to people.
-- Locks: none (a new function). Older daemons: there are none.
--
-- push() takes a batch of any players as arrays and answers each push with a row, in their order. It locks the players
-- in a first statement and decides in a later one, since in READ COMMITTED a statement that waited for a row's lock
-- still reads other tables by its old snapshot. Whoever else writes games or game_versions must first lock the player's
-- row by an UPDATE: the heads are written by their place (ctid), which only holds under that lock.
--
-- Its shape was chosen by measurement (Benchmarks/sql; user instructions a row in batches of 250, 1.1 KB states):
--   * Every table is reached by one index look-up a push, and no other plan can come up, whatever the statistics say or
--     do not say: OFFSET 0 keeps a look-up from being joined in another way, the settings forbid scans and joins. Before
--     that, generic plans made on small tables stayed when the tables had grown: 12 times the cost and more.
--   * The arrays are read by subscript: plpgsql keeps them deconstructed, so a subscript costs the same at any place,
--     and nothing is copied as unnest() would copy every state (twice).
--   * The heads are found once, and written by ctid: 12,000 less than INSERT ... ON CONFLICT, which finds the row
--     again and logs a lock of it.
--   * No foreign keys, no trigger: checking the device here costs 9,800, the key's trigger several times that. It is
--     not checked again where the daemon says that it was found valid a moment ago.
--   * A push that is later than all of its game's versions repeats none: games.latest_saved spares it the look-up, 10,000.
--   * Without those two a push costs about 137,000; of these the index for repeated saves takes 14,000 (as an index by
--     collection, game, device and saved it would take 5,000 more), pages filled to a half instead of to the brim save
--     15,000, and deciding the base apart from the head takes 3,000. Joining players in every statement, as a distributed
--     database wants it, costs another 37,000: SQL/distributed/push.sql rewrites the function for such a database.

CREATE FUNCTION push(
    shard_key uuid, players_in uuid[], devices_in uuid[], collections_in text[], games_in text[],
    saved_in timestamptz[], bases_in bigint[], schemas_in integer[], states_in json[],
    arrived timestamptz DEFAULT clock_timestamp(), verified_in boolean[] DEFAULT NULL)
RETURNS TABLE (
    ordinal integer, outcome text, first_outcome text, revision bigint, stamp timestamptz, rival bigint,
    head_revision bigint, head_saved timestamptz, head_stamp timestamptz, head_device uuid, head_schema integer,
    head_state json, head_deleted boolean)
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
    pushes    integer := cardinality(players_in);
    one_each  boolean;           -- the players come in ascending order, each with one push: the usual batch
    lock      record;
    locked    integer := 0;
    known     uuid[] := '{}';    -- the players that exist, each once, ascending
    lasts     bigint[] := '{}';  -- their last revisions, with a number reserved for each push
    ordinals  integer[];         -- places in the batch as it came, when pushes of unknown players were taken out
    strangers integer[];         -- their places
    outcomes  text[];
    firsts    text[];            -- repeated pushes: the outcome of the first time
    earlier   bigint[];          -- and its revision; of saved-reused, too
    revisions bigint[];
    stamps    timestamptz[];
    rivals    bigint[];
    places    tid[];             -- where the game's row in games is
    written   integer;
    losers    integer[];         -- pushes that must be told the head, and the heads
    head_revisions bigint[];
    head_saves     timestamptz[];
    head_stamps    timestamptz[];
    head_devices   uuid[];
    head_schemas   integer[];
    head_states    json[];
BEGIN
    IF pushes = 0 THEN
        RETURN;
    END IF;
    IF (cardinality(devices_in), cardinality(collections_in), cardinality(games_in), cardinality(saved_in),
        cardinality(bases_in), cardinality(schemas_in), cardinality(states_in))
       IS DISTINCT FROM (pushes, pushes, pushes, pushes, pushes, pushes, pushes) THEN
        RAISE EXCEPTION 'the arrays of a batch must be equally long' USING ERRCODE = 'array_subscript_error';
    END IF;

    -- 1. Lock the players in the order of their ids, so that two daemons cannot deadlock, and reserve the numbers.
    SELECT bool_and(coalesce(players_in[k] < players_in[k + 1], false)) INTO one_each FROM generate_series(1, pushes - 1) AS k;
    IF one_each IS NOT FALSE THEN
        FOR lock IN
            UPDATE players AS p SET last_revision = p.last_revision + 1
             WHERE p.player_id = ANY (players_in)
            RETURNING p.player_id, p.last_revision
        LOOP
            locked := locked + 1;
            known[locked] := lock.player_id;
            lasts[locked] := lock.last_revision;
        END LOOP;
    ELSE
        IF EXISTS (SELECT FROM unnest(players_in, collections_in, games_in) AS i (player_id, collection, game_id)
                    GROUP BY i.player_id, i.collection, i.game_id HAVING count(*) > 1) THEN
            RAISE EXCEPTION 'a batch holds at most one push of a game' USING ERRCODE = 'cardinality_violation';
        END IF;
        FOR lock IN
            UPDATE players AS p SET last_revision = p.last_revision + i.pushes
              FROM (SELECT u.player_id, count(*) AS pushes FROM unnest(players_in) AS u (player_id)
                     GROUP BY u.player_id ORDER BY u.player_id) AS i
             WHERE p.player_id BETWEEN i.player_id AND i.player_id   -- not "=": that could be joined in another order
                   /* distributed: AND p.player_id = ANY (players_in) */
            RETURNING p.player_id, p.last_revision
        LOOP
            locked := locked + 1;
            known[locked] := lock.player_id;
            lasts[locked] := lock.last_revision;
        END LOOP;
        SELECT array_agg(l.player_id ORDER BY l.player_id), array_agg(l.last_revision ORDER BY l.player_id)
          INTO known, lasts FROM unnest(known, lasts) AS l (player_id, last_revision);
    END IF;

    -- Pushes of unknown players are taken out here and answered at the end.
    IF known IS DISTINCT FROM players_in THEN
        SELECT array_agg(k ORDER BY k) FILTER (WHERE NOT is_known), array_agg(k ORDER BY k) FILTER (WHERE is_known)
          INTO strangers, ordinals
          FROM (SELECT k, known[width_bucket(players_in[k], known)] IS NOT DISTINCT FROM players_in[k]
                          AND players_in[k] IS NOT NULL AS is_known
                  FROM generate_series(1, pushes) AS k) AS i;
        IF strangers IS NOT NULL THEN
            SELECT array_agg(players_in[k] ORDER BY k), array_agg(devices_in[k] ORDER BY k),
                   array_agg(collections_in[k] ORDER BY k), array_agg(games_in[k] ORDER BY k),
                   array_agg(saved_in[k] ORDER BY k), array_agg(bases_in[k] ORDER BY k),
                   array_agg(schemas_in[k] ORDER BY k), array_agg(states_in[k] ORDER BY k),
                   array_agg(verified_in[k] ORDER BY k)
              INTO players_in, devices_in, collections_in, games_in, saved_in, bases_in, schemas_in, states_in,
                   verified_in
              FROM unnest(ordinals) AS k;
            pushes := coalesce(cardinality(players_in), 0);
        END IF;
    END IF;

    IF pushes > 0 THEN
        -- 2. Decide, by a later snapshot than the lock's. The order of the conditions is the order of the rule.
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

        -- 3. Number. Where pushes are refused or repeated, those behind them move up and the surplus is given back.
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

        -- 4. Write the versions and the heads.
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

        -- 5. Fetch the heads for those that lost, now or the first time.
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

    IF strangers IS NULL AND losers IS NULL THEN   -- the usual batch
        RETURN QUERY
        SELECT k, outcomes[k], firsts[k], revisions[k], stamps[k], rivals[k], NULL::bigint, NULL::timestamptz,
               NULL::timestamptz, NULL::uuid, NULL::integer, NULL::json, NULL::boolean
          FROM generate_series(1, pushes) AS k;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT coalesce(ordinals[k], k) AS at, outcomes[k], firsts[k], revisions[k], stamps[k], rivals[k],
           head_revisions[h], head_saves[h], head_stamps[h], head_devices[h], head_schemas[h], head_states[h],
           CASE WHEN h IS NOT NULL THEN head_states[h] IS NULL END
      FROM (SELECT k, array_position(losers, k) AS h FROM generate_series(1, pushes) AS k) AS i
     UNION ALL
    SELECT k, 'unknown-player', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
      FROM unnest(strangers) AS k
     ORDER BY at;
END
$push$;
COMMENT ON FUNCTION push(uuid, uuid[], uuid[], text[], text[], timestamptz[], bigint[], integer[], json[], timestamptz, boolean[]) IS
    'Pushes a batch of saves, at most one of a game, best sorted by player. One row each, in their order: outcome created, advanced, won or lost; repeated (first_outcome tells more); or refused: unknown-player, unknown-device, saved-out-of-range, saved-reused (revision tells which), base-mismatch, invalid-id. The head comes with lost. A state of NULL deletes, a base of NULL is none. verified_in says of which pushes the device was found valid a moment ago, so that it is not looked up again; NULL: of none. shard_key is any of the players; it routes the call on a distributed database.';
