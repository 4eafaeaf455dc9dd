-- 0002_players.sql: players and their devices; signing up.
-- Locks: none (new tables). Older daemons: there are none.
--
-- Every key of a player's data leads with player_id, here and in all later migrations, so that the tables can be
-- distributed by it. A token carries its player's and its device's id, so that a login is a look-up by key.

CREATE TABLE players (
    player_id     uuid NOT NULL,
    created       timestamptz NOT NULL DEFAULT now(),
    last_revision bigint NOT NULL DEFAULT 0,
    purged_before bigint NOT NULL DEFAULT 0,
    CONSTRAINT players_pkey PRIMARY KEY (player_id),
    CONSTRAINT players_revisions_check CHECK (last_revision >= 0 AND purged_before BETWEEN 0 AND last_revision + 1)
) WITH (fillfactor = 50);
COMMENT ON TABLE players IS
    'One row per player. Its last_revision numbers the player''s versions and is the lock that every push of the player takes.';
COMMENT ON COLUMN players.player_id IS 'The player. Made by the daemon that signed the player up.';
COMMENT ON COLUMN players.created IS 'When the player signed up, by the server''s clock.';
COMMENT ON COLUMN players.last_revision IS
    'The greatest revision given out: the player''s versions are 1, 2, 3 … up to here without a gap. Also the cursor of a device that has seen all.';
COMMENT ON COLUMN players.purged_before IS
    'Tombstones below this revision may be gone. A device whose cursor is lower must pull all again. 0: nothing was ever purged.';

CREATE TABLE devices (
    player_id  uuid NOT NULL,
    device_id  uuid NOT NULL,
    created    timestamptz NOT NULL DEFAULT now(),
    revoked    timestamptz,
    token_hash bytea NOT NULL,
    name       text NOT NULL,
    CONSTRAINT devices_pkey PRIMARY KEY (player_id, device_id),
    CONSTRAINT devices_player_fkey FOREIGN KEY (player_id) REFERENCES players (player_id) ON DELETE CASCADE,
    CONSTRAINT devices_token_hash_check CHECK (octet_length(token_hash) = 32),
    CONSTRAINT devices_name_check CHECK (octet_length(name) BETWEEN 1 AND 255)
);
COMMENT ON TABLE devices IS 'One row per device that ever signed in. Rows stay when a device is revoked: the history names them.';
COMMENT ON COLUMN devices.player_id IS 'Whose device it is.';
COMMENT ON COLUMN devices.device_id IS 'The device. Made by the daemon; the last word when two versions carry the same times.';
COMMENT ON COLUMN devices.created IS 'When the device was registered or linked, by the server''s clock.';
COMMENT ON COLUMN devices.revoked IS 'Since when it may neither log in nor push; NULL while it may.';
COMMENT ON COLUMN devices.token_hash IS 'SHA-256 of its token''s secret. The secret itself is stored nowhere.';
COMMENT ON COLUMN devices.name IS 'What its owner calls it, for example "phone".';

CREATE FUNCTION register_player(player_in uuid, device_in uuid, name_in text, token_hash_in bytea) RETURNS void
LANGUAGE plpgsql AS $register$
BEGIN
    INSERT INTO players (player_id) VALUES (player_in) ON CONFLICT DO NOTHING;
    INSERT INTO devices (player_id, device_id, name, token_hash) VALUES (player_in, device_in, name_in, token_hash_in)
    ON CONFLICT DO NOTHING;
END
$register$;
COMMENT ON FUNCTION register_player(uuid, uuid, text, bytea) IS
    'Signs a new player up with a first device. Doing it again with the same ids, after an answer was lost, changes nothing.';
