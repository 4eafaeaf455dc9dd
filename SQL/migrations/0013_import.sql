-- 0013_import.sql: an exported history, brought into an empty player, in one place. Documentation/history.md tells it to people.
-- Locks: none (new tables and functions). Older daemons: not affected.
--
-- What a client sends is staged first, in tables of its own that no one else reads, and becomes the player's in one
-- transaction at the end, or not at all. The staging tables are unlogged: a crash empties them, the numbers no longer agree,
-- and the import is begun again.
--
-- finish_import() looks at everything before it locks the player, as push() does, by an UPDATE. It accepts only what push()
-- could have written: each version is decided again from those before it, as far as retention has left them. So a file
-- that was made by hand cannot put a head in the wrong place, nor leave something that a later push stumbles over.

CREATE TABLE imports (
    player_id uuid NOT NULL,
    import_id uuid NOT NULL,
    begun     timestamptz NOT NULL,
    finished  timestamptz,
    CONSTRAINT imports_pkey PRIMARY KEY (player_id),
    CONSTRAINT imports_player_fkey FOREIGN KEY (player_id) REFERENCES players (player_id) ON DELETE CASCADE
);
COMMENT ON TABLE imports IS 'The import of a history into a player: one that is under way, or the one that the player''s history came from.';
COMMENT ON COLUMN imports.player_id IS 'Whose history it becomes.';
COMMENT ON COLUMN imports.import_id IS 'Names the import: another that begins takes its place. Made by the daemon.';
COMMENT ON COLUMN imports.begun IS 'When it began, by the server''s clock.';
COMMENT ON COLUMN imports.finished IS 'When it became the player''s; NULL while it is staged.';

CREATE UNLOGGED TABLE import_devices (
    player_id uuid NOT NULL,
    device_id uuid NOT NULL,
    created   timestamptz NOT NULL,
    name      text NOT NULL,
    CONSTRAINT import_devices_pkey PRIMARY KEY (player_id, device_id)
);
COMMENT ON TABLE import_devices IS 'Devices of an import that is under way.';
COMMENT ON COLUMN import_devices.player_id IS 'Into whose history they go.';
COMMENT ON COLUMN import_devices.device_id IS 'The device.';
COMMENT ON COLUMN import_devices.created IS 'When it was registered or linked, as the export says.';
COMMENT ON COLUMN import_devices.name IS 'What its owner called it.';

CREATE UNLOGGED TABLE import_versions (
    player_id  uuid NOT NULL,
    revision   bigint NOT NULL,
    device_id  uuid NOT NULL,
    saved      timestamptz NOT NULL,
    stamp      timestamptz NOT NULL,
    received   timestamptz NOT NULL,
    base       bigint,
    rival      bigint,
    schema     integer NOT NULL,
    collection text COLLATE "C" NOT NULL,
    game_id    text COLLATE "C" NOT NULL,
    outcome    text COLLATE "C" NOT NULL,
    state      json,
    CONSTRAINT import_versions_pkey PRIMARY KEY (player_id, revision)
);
COMMENT ON TABLE import_versions IS 'Versions of an import that is under way. The columns are those of game_versions.';
COMMENT ON COLUMN import_versions.player_id IS 'Into whose history they go.';
COMMENT ON COLUMN import_versions.revision IS 'The version''s number in the history that was exported.';
COMMENT ON COLUMN import_versions.device_id IS 'The device that pushed it.';
COMMENT ON COLUMN import_versions.saved IS 'When it was saved, by the device''s clock.';
COMMENT ON COLUMN import_versions.stamp IS 'What conflicts compare.';
COMMENT ON COLUMN import_versions.received IS 'When it arrived at the server that it was exported from.';
COMMENT ON COLUMN import_versions.base IS 'The revision that the device had last seen.';
COMMENT ON COLUMN import_versions.rival IS 'For won and lost: the revision that it met.';
COMMENT ON COLUMN import_versions.schema IS 'The app''s schema version of the state.';
COMMENT ON COLUMN import_versions.collection IS 'The type of the game.';
COMMENT ON COLUMN import_versions.game_id IS 'The game, unique in its player''s collection.';
COMMENT ON COLUMN import_versions.outcome IS 'created, advanced, won or lost.';
COMMENT ON COLUMN import_versions.state IS 'The game itself, byte for byte; NULL is a tombstone.';

CREATE FUNCTION begin_import(player_in uuid, import_in uuid, moment timestamptz DEFAULT clock_timestamp()) RETURNS text
LANGUAGE plpgsql AS $begin$
DECLARE
    last bigint := (SELECT p.last_revision FROM players AS p WHERE p.player_id = player_in);
BEGIN
    IF last IS NULL THEN
        RETURN 'unknown-player';
    ELSIF last > 0 THEN
        RETURN 'not-empty';
    END IF;
    INSERT INTO imports AS i (player_id, import_id, begun) VALUES (player_in, import_in, moment)
    ON CONFLICT (player_id) DO UPDATE SET import_id = excluded.import_id, begun = excluded.begun, finished = NULL;
    DELETE FROM import_versions AS v WHERE v.player_id = player_in;
    DELETE FROM import_devices AS d WHERE d.player_id = player_in;
    RETURN 'begun';
END
$begin$;
COMMENT ON FUNCTION begin_import(uuid, uuid, timestamptz) IS
    'Begins an import into a player without versions, and forgets what an earlier one has staged. Answers begun, not-empty or unknown-player.';

CREATE FUNCTION stage_import(
    player_in uuid, import_in uuid, device_ids uuid[], device_dates timestamptz[], device_names text[],
    revisions_in bigint[], devices_in uuid[], saved_in timestamptz[], stamps_in timestamptz[], received_in timestamptz[],
    bases_in bigint[], rivals_in bigint[], schemas_in integer[], collections_in text[], games_in text[], outcomes_in text[],
    states_in json[]) RETURNS text
LANGUAGE plpgsql AS $stage$
BEGIN
    -- The row is the lock that keeps a later import from emptying the tables before this one's rows are in them.
    UPDATE imports AS i SET begun = i.begun
     WHERE i.player_id = player_in AND i.import_id = import_in AND i.finished IS NULL;
    IF NOT FOUND THEN
        RETURN 'superseded';
    END IF;
    INSERT INTO import_devices (player_id, device_id, created, name)
    SELECT player_in, d.device_id, d.created, d.name
      FROM unnest(device_ids, device_dates, device_names) AS d (device_id, created, name)
    ON CONFLICT DO NOTHING;   -- finish_import() counts
    INSERT INTO import_versions (player_id, revision, device_id, saved, stamp, received, base, rival, schema, collection,
                                 game_id, outcome, state)
    SELECT player_in, v.revision, v.device_id, v.saved, v.stamp, v.received, v.base, v.rival, v.schema, v.collection,
           v.game_id, v.outcome, v.state
      FROM unnest(revisions_in, devices_in, saved_in, stamps_in, received_in, bases_in, rivals_in, schemas_in,
                  collections_in, games_in, outcomes_in, states_in)
           AS v (revision, device_id, saved, stamp, received, base, rival, schema, collection, game_id, outcome, state)
    ON CONFLICT DO NOTHING;
    RETURN 'staged';
END
$stage$;
COMMENT ON FUNCTION stage_import(uuid, uuid, uuid[], timestamptz[], text[], bigint[], uuid[], timestamptz[], timestamptz[], timestamptz[], bigint[], bigint[], integer[], text[], text[], text[], json[]) IS
    'Adds devices and versions to an import that is under way. The daemon has checked each by itself: names, times, JSON. Answers staged, or superseded where another import has begun.';

CREATE FUNCTION check_import(
    player_in uuid, versions_in bigint, devices_in bigint, last_in bigint, purged_in bigint, latest timestamptz,
    OUT problem text, OUT revision bigint)
LANGUAGE plpgsql
SET work_mem = '64MB'   -- it sorts all versions by game
AS $check$
#variable_conflict use_column
DECLARE
    counted  bigint;
    greatest_revision bigint;
    unpurged bigint;
    first    CONSTANT bigint := greatest(purged_in, 1);   -- from here on nothing may be missing
BEGIN
    SELECT count(*), coalesce(max(v.revision), 0), count(*) FILTER (WHERE v.revision >= first)
      INTO counted, greatest_revision, unpurged
      FROM import_versions AS v WHERE v.player_id = player_in;
    IF counted <> versions_in OR (SELECT count(*) FROM import_devices AS d WHERE d.player_id = player_in) <> devices_in THEN
        problem := 'incomplete';
        RETURN;
    END IF;
    IF last_in > 9007199254740991 THEN   -- what JSON carries exactly, and pushes go on from there for ever
        problem := 'last';
        RETURN;
    END IF;
    IF greatest_revision > last_in OR purged_in > last_in + 1 OR unpurged <> last_in - first + 1 THEN
        problem := 'gap';
        revision := greatest_revision;
        RETURN;
    END IF;

    SELECT g.lowest INTO revision
      FROM (SELECT min(v.revision) AS lowest, bool_or(v.outcome <> 'lost') AS has_head
              FROM import_versions AS v WHERE v.player_id = player_in
             GROUP BY v.collection, v.game_id) AS g
     WHERE NOT g.has_head ORDER BY g.lowest LIMIT 1;
    IF FOUND THEN
        problem := 'head';
        RETURN;
    END IF;

    -- Each version again, from those before it. head is the head that it met, or one before that if that one was pruned.
    SELECT c.problem, c.revision INTO problem, revision
      FROM (SELECT v.revision,
                   CASE WHEN v.device_is_known IS NOT TRUE THEN 'device'
                        WHEN v.twins > 1 THEN 'saved'
                        WHEN v.received > latest OR v.stamp > latest THEN 'future'
                        WHEN (v.outcome = 'created' AND v.place > 1)
                          OR (v.outcome <> 'created' AND v.head IS NULL AND first = 1)
                          OR (v.outcome IN ('won', 'lost')) <> (v.rival IS NOT NULL) THEN 'outcome'
                        WHEN v.outcome <> 'created'
                         AND NOT coalesce(v.met > 0 AND v.met < v.revision
                                          AND (v.met = v.head
                                               OR (v.met < first AND NOT v.met_is_there AND v.met > coalesce(v.head, 0))), false)
                            THEN CASE v.outcome WHEN 'advanced' THEN 'base' ELSE 'rival' END
                        WHEN v.outcome IN ('won', 'lost') AND (v.base = v.rival
                          OR (v.met = v.head AND v.outcome <> CASE
                              WHEN v.base = 0 THEN 'lost'
                              WHEN (v.stamp, v.saved, v.device_id) > (v.head_stamp, v.head_saved, v.head_device) THEN 'won'
                              ELSE 'lost' END)
                          OR (v.base = 0 AND v.outcome = 'won')) THEN 'rival'
                        WHEN v.base_is_there AND NOT v.base_is_same_game AND v.base_received <> v.received THEN 'base'
                        WHEN CASE WHEN v.base_is_there AND v.base_is_same_game
                                      THEN v.stamp <> greatest(v.plain_stamp, v.base_stamp + interval '1 microsecond')
                                  WHEN NOT v.base_is_there AND v.base > 0 AND v.base < least(first, v.revision)
                                      THEN v.stamp < v.plain_stamp
                                  ELSE v.stamp <> v.plain_stamp END THEN 'stamp'
                   END AS problem
              FROM (SELECT w.revision, w.device_id, w.saved, w.stamp, w.received, w.base, w.rival, w.outcome, w.place,
                           w.head, w.twins, w.met, d.device_id IS NOT NULL AS device_is_known,
                           least(w.saved, w.received + interval '5 seconds') AS plain_stamp,
                           b.revision IS NOT NULL AS base_is_there, b.stamp AS base_stamp, b.received AS base_received,
                           b.collection = w.collection AND b.game_id = w.game_id AS base_is_same_game,
                           m.revision IS NOT NULL AS met_is_there,
                           h.stamp AS head_stamp, h.saved AS head_saved, h.device_id AS head_device
                      FROM (SELECT i.revision, i.device_id, i.saved, i.stamp, i.received, i.base, i.rival, i.outcome,
                                   i.collection, i.game_id,
                                   CASE i.outcome WHEN 'advanced' THEN i.base ELSE i.rival END AS met,
                                   row_number() OVER game AS place,
                                   max(i.revision) FILTER (WHERE i.outcome <> 'lost')
                                       OVER (PARTITION BY i.collection, i.game_id ORDER BY i.revision
                                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS head,
                                   count(*) OVER (PARTITION BY i.collection, i.game_id, i.device_id, i.saved) AS twins
                              FROM import_versions AS i WHERE i.player_id = player_in
                            WINDOW game AS (PARTITION BY i.collection, i.game_id ORDER BY i.revision)) AS w
                      LEFT JOIN import_devices AS d ON d.player_id = player_in AND d.device_id = w.device_id
                      LEFT JOIN import_versions AS b ON b.player_id = player_in AND b.revision = w.base AND w.base < w.revision
                      LEFT JOIN import_versions AS m ON m.player_id = player_in AND m.revision = w.met
                      LEFT JOIN import_versions AS h ON h.player_id = player_in AND h.revision = w.head) AS v) AS c
     WHERE c.problem IS NOT NULL
     ORDER BY c.revision LIMIT 1;
END
$check$;
COMMENT ON FUNCTION check_import(uuid, bigint, bigint, bigint, bigint, timestamptz) IS
    'Whether what is staged for a player is a history that push() could have written. problem is NULL if it is; else incomplete, last, gap, head, device, saved, future, outcome, base, rival or stamp, with the first revision concerned.';

CREATE FUNCTION finish_import(
    player_in uuid, import_in uuid, versions_in bigint, devices_in bigint, last_in bigint, purged_in bigint,
    most_games bigint, moment timestamptz DEFAULT clock_timestamp(), OUT outcome text, OUT problem text, OUT revision bigint)
LANGUAGE plpgsql AS $finish$
#variable_conflict use_column
DECLARE
    staged  imports;
    checked record;
    last    bigint;
BEGIN
    UPDATE imports AS i SET begun = i.begun WHERE i.player_id = player_in AND i.import_id = import_in
    RETURNING i.* INTO staged;
    SELECT p.last_revision INTO last FROM players AS p WHERE p.player_id = player_in;
    IF staged.import_id IS NULL OR last IS NULL THEN
        outcome := 'superseded';
        RETURN;
    ELSIF staged.finished IS NOT NULL THEN
        outcome := 'repeated';
        RETURN;
    ELSIF last > 0 THEN
        outcome := 'not-empty';
        RETURN;
    END IF;
    IF (SELECT count(*) FILTER (WHERE g.is_kept)
          FROM (SELECT DISTINCT ON (v.collection, v.game_id) v.state IS NOT NULL AS is_kept
                  FROM import_versions AS v WHERE v.player_id = player_in AND v.outcome <> 'lost'
                 ORDER BY v.collection, v.game_id, v.revision DESC) AS g) > most_games THEN
        outcome := 'too-many-games';
        RETURN;
    END IF;
    SELECT * INTO checked FROM check_import(player_in, versions_in, devices_in, last_in, purged_in, moment + interval '1 day');
    IF checked.problem IS NOT NULL THEN
        outcome := 'refused';
        problem := checked.problem;
        revision := checked.revision;
        RETURN;
    END IF;

    PERFORM set_config('synchronous_commit', 'on', true);
    UPDATE players AS p SET last_revision = last_in, purged_before = purged_in
     WHERE p.player_id = player_in AND p.last_revision = 0;
    IF NOT FOUND THEN   -- somebody pushed meanwhile
        outcome := 'not-empty';
        RETURN;
    END IF;
    INSERT INTO devices (player_id, device_id, created, revoked, token_hash, name)
    SELECT d.player_id, d.device_id, d.created, moment, decode(repeat('00', 32), 'hex'), d.name   -- no secret has this hash
      FROM import_devices AS d WHERE d.player_id = player_in
    ON CONFLICT DO NOTHING;
    INSERT INTO game_versions (player_id, revision, device_id, saved, stamp, received, base, rival, schema, size, collection,
                               game_id, outcome, state)
    SELECT v.player_id, v.revision, v.device_id, v.saved, v.stamp, v.received, v.base, v.rival, v.schema,
           coalesce(octet_length(v.state::text), 0), v.collection, v.game_id, v.outcome, v.state
      FROM import_versions AS v WHERE v.player_id = player_in
     ORDER BY v.revision;
    INSERT INTO games (player_id, head_revision, stamp, saved, device_id, latest_saved, collection, game_id)
    SELECT h.player_id, h.revision, h.stamp, h.saved, h.device_id, g.latest_saved, h.collection, h.game_id
      FROM (SELECT max(v.revision) FILTER (WHERE v.outcome <> 'lost') AS head_revision, max(v.saved) AS latest_saved
              FROM import_versions AS v WHERE v.player_id = player_in
             GROUP BY v.collection, v.game_id) AS g
      JOIN import_versions AS h ON h.player_id = player_in AND h.revision = g.head_revision;
    DELETE FROM import_versions AS v WHERE v.player_id = player_in;
    DELETE FROM import_devices AS d WHERE d.player_id = player_in;
    UPDATE imports AS i SET finished = moment WHERE i.player_id = player_in;
    outcome := 'imported';
END
$finish$;
COMMENT ON FUNCTION finish_import(uuid, uuid, bigint, bigint, bigint, bigint, bigint, timestamptz) IS
    'Makes what is staged the player''s history, or nothing of it. outcome is imported; repeated where that was done before; superseded where another import has begun; not-empty where the player has versions by now; too-many-games where more games than most_games (NULL: any number) would not be deleted; refused with check_import()''s problem and revision. The devices of the history cannot sign in.';

CREATE FUNCTION cancel_import(player_in uuid, import_in uuid) RETURNS void
LANGUAGE plpgsql AS $cancel$
BEGIN
    DELETE FROM imports AS i WHERE i.player_id = player_in AND i.import_id = import_in AND i.finished IS NULL;
    IF FOUND THEN
        DELETE FROM import_versions AS v WHERE v.player_id = player_in;
        DELETE FROM import_devices AS d WHERE d.player_id = player_in;
    END IF;
END
$cancel$;
COMMENT ON FUNCTION cancel_import(uuid, uuid) IS 'Forgets an import that is not finished, with all that it has staged.';

CREATE FUNCTION cancel_abandoned_imports(before timestamptz) RETURNS bigint
LANGUAGE sql AS $abandoned$
    SELECT count(cancel_import(i.player_id, i.import_id)) FROM imports AS i WHERE i.finished IS NULL AND i.begun < before;
$abandoned$;
COMMENT ON FUNCTION cancel_abandoned_imports(timestamptz) IS
    'Forgets the imports that began before a moment and were not finished: their daemon died, or their client went. Returns how many.';
