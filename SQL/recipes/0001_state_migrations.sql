-- 0001_state_migrations.sql: changes the states of one collection, in batches, beside running daemons.
-- Locks: none on tables; each batch holds the rows of its players, as a push does. Older daemons: not affected.
--
-- Not part of Ieum's schema: copy it to the front of a set of your own. Documentation/migrations.md explains it.

CREATE TABLE state_migrations (
    to_schema  integer NOT NULL,
    started    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated    timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished   timestamptz,
    player_id  uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    looked_at  bigint NOT NULL DEFAULT 0,
    migrated   bigint NOT NULL DEFAULT 0,
    left_alone bigint NOT NULL DEFAULT 0,
    collection text COLLATE "C" NOT NULL,
    game_id    text COLLATE "C" NOT NULL DEFAULT '',
    CONSTRAINT state_migrations_pkey PRIMARY KEY (collection, to_schema)
);
COMMENT ON TABLE state_migrations IS 'How far migrate_states() is: one row per collection and schema, written with each batch.';
COMMENT ON COLUMN state_migrations.to_schema IS 'The schema that the states are brought to.';
COMMENT ON COLUMN state_migrations.started IS 'When this pass began. A pass that was cut off is gone on with, one that finished is begun anew.';
COMMENT ON COLUMN state_migrations.updated IS 'When the last batch was written.';
COMMENT ON COLUMN state_migrations.finished IS 'When this pass had seen all games; NULL while it has not.';
COMMENT ON COLUMN state_migrations.player_id IS 'The place: games up to this player''s game_id are done.';
COMMENT ON COLUMN state_migrations.looked_at IS 'Games seen in this pass.';
COMMENT ON COLUMN state_migrations.migrated IS 'Versions pushed in this pass.';
COMMENT ON COLUMN state_migrations.left_alone IS 'Games whose state was not as expected, so that the function gave NULL. They keep their older schema.';
COMMENT ON COLUMN state_migrations.collection IS 'The collection.';
COMMENT ON COLUMN state_migrations.game_id IS 'The place within the player''s games.';

CREATE FUNCTION state_without(state json, VARIADIC keys text[]) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE AS $without$
    SELECT ('{' || coalesce(string_agg(to_json(e.key)::text || ':' || e.value::text, ',' ORDER BY e.place), '') || '}')::json
      FROM json_each(state) WITH ORDINALITY AS e (key, value, place)
     WHERE e.key <> ALL (keys)
$without$;
COMMENT ON FUNCTION state_without(json, text[]) IS
    'An object without some keys. The others keep their order, and their values every byte: numbers are not written anew.';

CREATE FUNCTION state_with(state json, key_in text, value_in json) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE AS $with$
    SELECT ('{' || coalesce(string_agg(to_json(e.key)::text || ':' || e.value::text, ',' ORDER BY e.place) || ',', '')
            || to_json(key_in)::text || ':' || value_in::text || '}')::json
      FROM json_each(state) WITH ORDINALITY AS e (key, value, place)
     WHERE e.key <> key_in
$with$;
COMMENT ON FUNCTION state_with(json, text, json) IS
    'An object with a key set, which comes last. The others keep their order, and their values every byte.';

CREATE PROCEDURE migrate_states(
    collection_in text, to_schema_in integer, change regprocedure, batch integer DEFAULT 250, rest interval DEFAULT '0')
LANGUAGE plpgsql AS $migrate$
#variable_conflict use_column
DECLARE
    -- The device of the migration. The least id there is: where all else is equal, a player's device wins.
    migrator CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    read_changed CONSTANT text := format($read$
        SELECT array_agg(h.player_id ORDER BY h.player_id, h.game_id) FILTER (WHERE h.state IS NOT NULL),
               array_agg(h.game_id ORDER BY h.player_id, h.game_id) FILTER (WHERE h.state IS NOT NULL),
               array_agg(h.head_revision ORDER BY h.player_id, h.game_id) FILTER (WHERE h.state IS NOT NULL),
               array_agg(h.stamp + interval '1 microsecond' ORDER BY h.player_id, h.game_id) FILTER (WHERE h.state IS NOT NULL),
               array_agg(h.state ORDER BY h.player_id, h.game_id) FILTER (WHERE h.state IS NOT NULL),
               count(*) FILTER (WHERE h.state IS NULL)
          FROM (SELECT g.player_id, g.game_id, g.head_revision, g.stamp, %s(v.state) AS state
                  FROM unnest($1, $2) AS p (player_id, game_id)
                  JOIN games AS g ON g.player_id = p.player_id AND g.collection = $3 AND g.game_id = p.game_id
                  JOIN game_versions AS v ON v.player_id = g.player_id AND v.revision = g.head_revision
                 WHERE p.player_id = ANY ($4) AND v.schema < $5 AND v.state IS NOT NULL
                OFFSET 0) AS h $read$, change::oid::regproc);
    place      state_migrations%ROWTYPE;
    page       uuid[];          -- the next games, in the order of their key: players
    page_games text[];          -- and games
    old        uuid[];          -- the players among them that have heads of an older schema
    players    uuid[];          -- what is pushed
    games      text[];
    bases      bigint[];
    saves      timestamptz[];
    states     json[];
    revisions  bigint[];
    pushes     integer;
    unfit      bigint;          -- games whose state is not as expected
    refused    text;
    told       timestamptz := clock_timestamp();
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'migrate_states() must see what was pushed while it waited for a player: it needs read committed'
            USING HINT = 'SET default_transaction_isolation = ''read committed''';
    END IF;
    INSERT INTO state_migrations AS m (collection, to_schema) VALUES (collection_in, to_schema_in)
    ON CONFLICT (collection, to_schema) DO UPDATE
       SET started = DEFAULT, updated = DEFAULT, finished = NULL, player_id = DEFAULT, game_id = DEFAULT,
           looked_at = 0, migrated = 0, left_alone = 0
     WHERE m.finished IS NOT NULL;
    COMMIT;

    LOOP
        -- Only look-ups by key, whatever the statistics say.
        SET LOCAL enable_seqscan = off;
        SET LOCAL enable_bitmapscan = off;
        SET LOCAL enable_hashjoin = off;
        SET LOCAL enable_mergejoin = off;

        -- The place is a row, locked: two runs at once share the work batch by batch.
        SELECT m.* INTO STRICT place FROM state_migrations AS m
         WHERE m.collection = collection_in AND m.to_schema = to_schema_in FOR UPDATE;
        EXIT WHEN place.finished IS NOT NULL;

        SELECT array_agg(p.player_id ORDER BY p.player_id, p.game_id), array_agg(p.game_id ORDER BY p.player_id, p.game_id),
               array_agg(DISTINCT p.player_id) FILTER (WHERE p.is_old)
          INTO page, page_games, old
          FROM (SELECT g.player_id, g.game_id, v.schema < to_schema_in AND v.state IS NOT NULL AS is_old
                  FROM (SELECT g.player_id, g.game_id, g.head_revision FROM games AS g
                         WHERE (g.player_id, g.collection, g.game_id) > (place.player_id, collection_in, place.game_id)
                           AND g.collection = collection_in
                         ORDER BY g.player_id, g.collection, g.game_id LIMIT batch) AS g
                  LEFT JOIN game_versions AS v ON v.player_id = g.player_id AND v.revision = g.head_revision) AS p;
        IF page IS NULL THEN
            UPDATE state_migrations AS m SET finished = clock_timestamp()
             WHERE m.collection = collection_in AND m.to_schema = to_schema_in;
            RAISE NOTICE '% to schema %: finished, % games looked at, % migrated, % left alone',
                collection_in, to_schema_in, place.looked_at, place.migrated, place.left_alone;
            COMMIT;
            EXIT;
        END IF;

        pushes := 0;
        unfit := 0;
        IF old IS NOT NULL THEN
            -- Lock the players, in the order in which push() does, and only then read their heads, by a later snapshot:
            -- no push can come between what is read here and what is pushed.
            PERFORM FROM players AS p WHERE p.player_id = ANY (old) ORDER BY p.player_id FOR NO KEY UPDATE;
            EXECUTE read_changed INTO players, games, bases, saves, states, unfit
              USING page, page_games, collection_in, old, to_schema_in;
            pushes := coalesce(cardinality(players), 0);
        END IF;
        IF pushes > 0 THEN
            -- Nobody can log in as this device: its token was never made. It may push within this transaction alone.
            INSERT INTO devices AS d (player_id, device_id, name, token_hash)
            SELECT p.player_id, migrator, 'state migration', uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
              FROM (SELECT DISTINCT u.player_id FROM unnest(players) AS u (player_id)) AS p
            ON CONFLICT (player_id, device_id) DO UPDATE SET revoked = NULL;

            SELECT array_agg(r.revision ORDER BY r.ordinal), min(r.outcome) FILTER (WHERE r.outcome <> 'advanced')
              INTO revisions, refused
              FROM push(players[1], players, array_fill(migrator, ARRAY[pushes]), array_fill(collection_in, ARRAY[pushes]),
                        games, saves, bases, array_fill(to_schema_in, ARRAY[pushes]), states) AS r;
            IF refused IS NOT NULL THEN
                RAISE EXCEPTION 'a migrated state was answered %, which cannot be while its player is locked', refused;
            END IF;
            UPDATE devices AS d SET revoked = clock_timestamp() WHERE d.player_id = ANY (players) AND d.device_id = migrator;

            -- Tell the daemons, which tell who watches: 100 players are 5,700 bytes at most, and 7,999 are allowed.
            PERFORM pg_notify('ieum_changes', string_agg(c.player || ':' || c.revision, ' '))
               FROM (SELECT u.player, max(u.revision) AS revision, row_number() OVER (ORDER BY u.player) - 1 AS place
                       FROM unnest(players, revisions) AS u (player, revision) GROUP BY u.player) AS c
              GROUP BY c.place / 100;
        END IF;

        UPDATE state_migrations AS m
           SET updated = clock_timestamp(), player_id = page[cardinality(page)], game_id = page_games[cardinality(page)],
               looked_at = m.looked_at + cardinality(page), migrated = m.migrated + pushes,
               left_alone = m.left_alone + unfit
         WHERE m.collection = collection_in AND m.to_schema = to_schema_in;
        COMMIT;
        IF clock_timestamp() > told + interval '10 seconds' THEN
            told := clock_timestamp();
            RAISE NOTICE '% to schema %: % games looked at, % migrated so far',
                collection_in, to_schema_in, place.looked_at + cardinality(page), place.migrated + pushes;
        END IF;
        PERFORM pg_sleep(extract(epoch FROM rest)) WHERE rest > interval '0';
    END LOOP;
    COMMIT;
END
$migrate$;
COMMENT ON PROCEDURE migrate_states(text, integer, regprocedure, integer, interval) IS
    'Pushes a new version of every game of a collection whose head has an older schema, its state changed by a function of json that gives NULL for what it leaves alone. A batch of games is a transaction, and rest the pause between two. Stopped, it goes on where it was; run again, it does what became old since.';
