-- 0012_reader.sql: the role ieum_reader, which sees the views and no table.
-- Locks: none that stop anyone. Older daemons: not affected.
--
-- A role belongs to the whole server: it may be there already, another database may be making it at this moment, or this
-- user may not make roles. None of these stops the migration; `ieumd grant-reader` does what is missing.

CREATE FUNCTION grant_views_to_reader() RETURNS text[]
LANGUAGE plpgsql AS $grant$
DECLARE
    views CONSTANT text[] := ARRAY['conflicts', 'current_games', 'daily_activity', 'handle_games', 'handle_guesses',
                                   'handle_statistics', 'history', 'player_devices', 'player_summary'];
    home  text := (SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                    WHERE c.oid = 'history'::regclass);
    view  text;
BEGIN
    IF NOT has_schema_privilege('ieum_reader', home, 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO ieum_reader', home);
    END IF;
    FOREACH view IN ARRAY views LOOP
        EXECUTE format('GRANT SELECT ON %I.%I TO ieum_reader', home, view);
    END LOOP;
    RETURN views;
END
$grant$;
COMMENT ON FUNCTION grant_views_to_reader() IS
    'Lets the role ieum_reader, which must exist, read Ieum''s views; returns their names. `ieumd grant-reader` calls it. Whoever adds a view adds it here.';
REVOKE EXECUTE ON FUNCTION grant_views_to_reader() FROM PUBLIC;

DO $role$
BEGIN
    IF to_regrole('ieum_reader') IS NULL THEN
        BEGIN
            CREATE ROLE ieum_reader NOLOGIN;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN
                NULL;   -- another database's migration was quicker
            WHEN insufficient_privilege THEN
                RAISE NOTICE 'the role ieum_reader was not made: % may not make roles', current_user
                    USING HINT = 'Have someone who may run: ieumd grant-reader';
                RETURN;
        END;
    END IF;
    BEGIN
        PERFORM grant_views_to_reader();
    EXCEPTION WHEN undefined_object THEN
        RAISE NOTICE 'the role ieum_reader went away meanwhile' USING HINT = 'Run: ieumd grant-reader';
    END;
END
$role$;
