-- 0017_daemon.sql: the role ieum_daemon, which may do what a daemon does and nothing else; row level security behind it.
-- Locks: ACCESS EXCLUSIVE on every table but server, for some 50 ms: who reads or pushes meanwhile waits for it.
-- Older daemons go on where they log in as the owner of the tables, which is exempt. A login that has rights on the tables by
-- grants of your own sees no rows in them any more: make it a member of ieum_daemon, or of ieum_reader for the views.
--
-- Two walls stand between a mistake in the daemon and another player's games. The role reads the tables of games and devices,
-- without hashes, and writes none: what changes something, holds a secret or is about many players at once is a function
-- that runs with its owner's rights. And of what it may read it sees the rows of one player only: the one that the setting
-- ieum.player names in this transaction. Where nobody is named nothing is seen, so that a predicate that was forgotten shows
-- nothing of others. The owner of the tables is not bound: migrations, dumps, `ieumd` commands and psql see all, and so do
-- the views that ieum_reader reads.
--
-- The price: 17,300 user instructions a call of push_batch(), whatever it pushes: 2.4 % of a lone push, nothing to be seen of a batch
-- (callgrind, 712,000 before). A read has the same index plans as before, and one statement more in its transaction: 50,000 for
-- that, and 30,000 for each table that it names; a pull of 495 games takes 26 million with and without.
--
-- Whoever replaces one of daemon_functions() says SECURITY DEFINER and its search_path again: CREATE OR REPLACE forgets both.
-- A policy names no role, so that a dump can be restored where there is no such role yet.

-- 1. What daemons asked many players' tables directly

CREATE FUNCTION find_device(player_in uuid, device_in uuid, token_hash_in bytea)
RETURNS TABLE (last_revision bigint, is_revoked boolean, is_current boolean, generation integer)
LANGUAGE plpgsql AS $find$
#variable_conflict use_column
DECLARE
    salt    CONSTANT bytea := uuid_send(gen_random_uuid());
    offered CONSTANT bytea := sha256(salt || token_hash_in);
BEGIN
    RETURN QUERY
    -- Digests with a random salt are compared: how long that takes tells nothing about the token's.
    SELECT p.last_revision, d.revoked IS NOT NULL, sha256(salt || d.token_hash) = offered, coalesce(r.generation, 0)
      FROM players AS p
      JOIN devices AS d ON d.player_id = p.player_id
      LEFT JOIN token_rotations AS r ON r.player_id = d.player_id AND r.device_id = d.device_id
     WHERE p.player_id = player_in AND d.device_id = device_in
       AND offered IN (sha256(salt || d.token_hash), sha256(salt || r.next_token_hash));
END
$find$;
COMMENT ON FUNCTION find_device(uuid, uuid, bytea) IS
    'Who signs in by a token: one row where its hash is that of the device, or (is_current is false) of the token that waits to take its place; no row otherwise. No hash is told.';

CREATE FUNCTION last_revisions(players_in uuid[]) RETURNS TABLE (player_id uuid, last_revision bigint)
LANGUAGE sql STABLE AS $last$
    SELECT p.player_id, p.last_revision FROM players AS p WHERE p.player_id = ANY (players_in);
$last$;
COMMENT ON FUNCTION last_revisions(uuid[]) IS
    'The counters of players whose changes a daemon watches; players that are not there are left out.';

CREATE FUNCTION recent_session_ends(since timestamptz)
RETURNS TABLE (moment timestamptz, player_id uuid, device_id uuid, generation integer)
LANGUAGE sql AS $recent$
    SELECT m.moment, e.player_id, nullif(e.device_id, '00000000-0000-0000-0000-000000000000'), e.generation
      FROM (SELECT clock_timestamp() AS moment) AS m LEFT JOIN session_ends AS e ON e.ended > since;
$recent$;
COMMENT ON FUNCTION recent_session_ends(timestamptz) IS
    'Which sessions are to end, as told after a moment. One row at least, with the moment of the look: since, the next time. device_id is NULL for all of a player''s.';

CREATE FUNCTION sweep_session_ends() RETURNS void
LANGUAGE sql AS $sweep$
    DELETE FROM session_ends AS e WHERE e.ended < clock_timestamp() - interval '10 minutes';
$sweep$;
COMMENT ON FUNCTION sweep_session_ends() IS 'Removes ends of sessions that every daemon has read long ago.';

CREATE FUNCTION check_devices(players_in uuid[], devices_in uuid[])
RETURNS TABLE (player_id uuid, device_id uuid, is_unknown boolean, is_revoked boolean, generation integer)
LANGUAGE sql STABLE AS $check$
    SELECT i.player_id, i.device_id, d.device_id IS NULL, d.revoked IS NOT NULL, coalesce(r.generation, 0)
      FROM unnest(players_in, devices_in) AS i (player_id, device_id)
      LEFT JOIN devices AS d ON d.player_id = i.player_id AND d.device_id = i.device_id AND d.player_id = ANY (players_in)
      LEFT JOIN token_rotations AS r
             ON r.player_id = i.player_id AND r.device_id = i.device_id AND r.player_id = ANY (players_in)
     WHERE d.device_id IS NULL OR d.revoked IS NOT NULL OR r.generation > 0;
$check$;
COMMENT ON FUNCTION check_devices(uuid[], uuid[]) IS
    'Of devices that are signed in, those whose sessions may have to end: the device is not there, was revoked, or had its token replaced.';

-- 2. What the daemon may call

CREATE FUNCTION daemon_functions() RETURNS regprocedure[]
LANGUAGE sql STABLE AS $functions$
    SELECT ARRAY[
        'begin_import(uuid,uuid,timestamptz)',
        'begin_token(uuid,uuid,bytea)',
        'cancel_abandoned_imports(timestamptz)',
        'cancel_import(uuid,uuid)',
        'check_devices(uuid[],uuid[])',
        'create_pairing_code(uuid,uuid,text,bytea)',
        'find_device(uuid,uuid,bytea)',
        'finish_import(uuid,uuid,bigint,bigint,bigint,bigint,bigint,timestamptz)',
        'last_revisions(uuid[])',
        'push_batch(uuid,uuid[],uuid[],text[],text[],timestamptz[],bigint[],integer[],json[],timestamptz,boolean[])',
        'recent_session_ends(timestamptz)',
        'redeem_pairing_code(text,bytea,uuid,text,bytea)',
        'register_player(uuid,uuid,text,bytea)',
        'register_player_by_invite(text,bytea,uuid,uuid,text,bytea)',
        'rename_device(uuid,uuid,uuid,text)',
        'revoke_device(uuid,uuid,uuid)',
        'rotate_token(uuid,uuid,bytea)',
        'stage_import(uuid,uuid,uuid[],timestamptz[],text[],bigint[],uuid[],timestamptz[],timestamptz[],timestamptz[],'
            'bigint[],bigint[],integer[],text[],text[],text[],json[])',
        'sweep_session_ends()']::regprocedure[];
$functions$;
COMMENT ON FUNCTION daemon_functions() IS
    'What the role ieum_daemon may call, and nobody else but their owner. Each runs with its owner''s rights. Whoever adds one adds it here.';

CREATE FUNCTION grant_rights_to_daemon() RETURNS boolean
LANGUAGE plpgsql AS $grant$
DECLARE
    home  text := (SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                    WHERE c.oid = 'players'::regclass);
    owner oid := (SELECT c.relowner FROM pg_class AS c WHERE c.oid = 'players'::regclass);
    thing text;
BEGIN
    FOR thing IN SELECT f::text FROM unnest(daemon_functions()) AS f LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', thing);   -- a dump that was restored without privileges lets everybody
    END LOOP;
    IF to_regrole('ieum_daemon') IS NULL THEN
        RETURN false;
    END IF;

    -- First nothing at all: what was granted by mistake, or by an earlier version, goes.
    FOR thing IN
        SELECT format('TABLE %s', c.oid::regclass) FROM pg_class AS c
         WHERE c.relnamespace = home::regnamespace AND c.relowner = owner AND c.relkind IN ('r', 'p', 'v', 'm')
        UNION ALL
        SELECT format('ROUTINE %s', p.oid::regprocedure) FROM pg_proc AS p
         WHERE p.pronamespace = home::regnamespace AND p.proowner = owner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM ieum_daemon', thing);
    END LOOP;

    IF NOT has_schema_privilege('ieum_daemon', home, 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO ieum_daemon', home);
    END IF;
    EXECUTE format('GRANT SELECT ON %1$I.server, %1$I.games, %1$I.game_versions TO ieum_daemon', home);
    EXECUTE format('GRANT SELECT (player_id, last_revision, purged_before) ON %I.players TO ieum_daemon', home);
    EXECUTE format('GRANT SELECT (player_id, device_id, created, revoked, name) ON %I.devices TO ieum_daemon', home);
    IF to_regclass(format('%I.schema_migrations', home)) IS NOT NULL THEN   -- `ieumd serve` looks whether the schema is its own
        EXECUTE format('GRANT SELECT ON %I.schema_migrations TO ieum_daemon', home);
    END IF;
    FOR thing IN SELECT f::text FROM unnest(daemon_functions()) AS f LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO ieum_daemon', thing);
    END LOOP;
    RETURN true;
END
$grant$;
COMMENT ON FUNCTION grant_rights_to_daemon() IS
    'Gives the role ieum_daemon exactly the rights that a daemon needs here, and takes those to its functions from everybody else. False: there is no such role. `ieumd grant-daemon` and `ieumd restore-epoch` call it.';

DO $definer$
DECLARE
    home text := (SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                   WHERE c.oid = 'players'::regclass);
    name regprocedure;
BEGIN
    FOREACH name IN ARRAY daemon_functions() LOOP
        -- Nothing that somebody puts into another schema, or makes for a session, stands in for what is meant.
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', name, home);
    END LOOP;
END
$definer$;

-- Parts of the above, what older daemons call, and what only the owner does. The views' functions stay everybody's.
REVOKE EXECUTE ON FUNCTION
    check_import(uuid, bigint, bigint, bigint, bigint, timestamptz), create_pairing_code(uuid, text, bytea), daemon_functions(),
    end_sessions(uuid, uuid, integer), grant_rights_to_daemon(),
    push(uuid, uuid[], uuid[], text[], text[], timestamptz[], bigint[], integer[], json[], timestamptz, boolean[])
FROM PUBLIC;

-- 3. Rows

-- players first, as a push does: behind it nobody holds a part of the others and waits for the rest.
LOCK TABLE players, devices, games, game_versions, token_rotations, session_ends, pairing_codes, invites, imports, import_devices,
    import_versions IN ACCESS EXCLUSIVE MODE;

ALTER TABLE players ENABLE ROW LEVEL SECURITY;
ALTER TABLE devices ENABLE ROW LEVEL SECURITY;
ALTER TABLE games ENABLE ROW LEVEL SECURITY;
ALTER TABLE game_versions ENABLE ROW LEVEL SECURITY;
-- Without a policy: whatever somebody grants by mistake, only the owner sees a row.
ALTER TABLE token_rotations ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_ends ENABLE ROW LEVEL SECURITY;
ALTER TABLE pairing_codes ENABLE ROW LEVEL SECURITY;
ALTER TABLE invites ENABLE ROW LEVEL SECURITY;
ALTER TABLE imports ENABLE ROW LEVEL SECURITY;
ALTER TABLE import_devices ENABLE ROW LEVEL SECURITY;
ALTER TABLE import_versions ENABLE ROW LEVEL SECURITY;

-- The setting is read once a statement, not once a row: that is what the subquery is for (without it 30,000 instructions fewer for
-- one game, 2 million more for 495). Empty is what it is behind the end of the transaction that had set it.
CREATE POLICY players_claimed ON players FOR SELECT
    USING (player_id = (SELECT nullif(current_setting('ieum.player', true), '')::uuid));
CREATE POLICY devices_claimed ON devices FOR SELECT
    USING (player_id = (SELECT nullif(current_setting('ieum.player', true), '')::uuid));
CREATE POLICY games_claimed ON games FOR SELECT
    USING (player_id = (SELECT nullif(current_setting('ieum.player', true), '')::uuid));
CREATE POLICY game_versions_claimed ON game_versions FOR SELECT
    USING (player_id = (SELECT nullif(current_setting('ieum.player', true), '')::uuid));
COMMENT ON POLICY players_claimed ON players IS 'Who is not the owner sees the player that ieum.player names in this transaction.';
COMMENT ON POLICY devices_claimed ON devices IS 'Who is not the owner sees the devices of the player that ieum.player names.';
COMMENT ON POLICY games_claimed ON games IS 'Who is not the owner sees the games of the player that ieum.player names.';
COMMENT ON POLICY game_versions_claimed ON game_versions IS 'Who is not the owner sees the versions of the player that ieum.player names.';

-- 4. The role. It belongs to the whole server, as ieum_reader does: none of what can go wrong stops the migration.

DO $role$
BEGIN
    IF to_regrole('ieum_daemon') IS NULL THEN
        BEGIN
            CREATE ROLE ieum_daemon NOLOGIN;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN
                NULL;   -- another database's migration was quicker
            WHEN insufficient_privilege THEN
                RAISE NOTICE 'the role ieum_daemon was not made: % may not make roles', current_user
                    USING HINT = 'Have someone who may run: ieumd grant-daemon';
        END;
    END IF;
    BEGIN
        PERFORM grant_rights_to_daemon();
    EXCEPTION WHEN undefined_object THEN
        RAISE NOTICE 'the role ieum_daemon went away meanwhile' USING HINT = 'Run: ieumd grant-daemon';
    END;
END
$role$;
