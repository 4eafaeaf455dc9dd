-- 0005_pairing.sql: codes by which a device lets another one in.
-- Locks: none (a new table and new functions). Older daemons: there are none.
--
-- No foreign key: on a distributed database codes are spread by their locator, players by their id.

CREATE TABLE pairing_codes (
    locator    text COLLATE "C" NOT NULL,
    player_id  uuid NOT NULL,
    code_hash  bytea NOT NULL,
    created    timestamptz NOT NULL,
    expires    timestamptz NOT NULL,
    tries_left integer NOT NULL,
    CONSTRAINT pairing_codes_pkey PRIMARY KEY (locator),
    CONSTRAINT pairing_codes_locator_check CHECK (octet_length(locator) = 4),
    CONSTRAINT pairing_codes_code_hash_check CHECK (octet_length(code_hash) = 32),
    CONSTRAINT pairing_codes_tries_left_check CHECK (tries_left >= 0)
);
CREATE INDEX pairing_codes_player_idx ON pairing_codes (player_id);
CREATE INDEX pairing_codes_expires_idx ON pairing_codes (expires);
COMMENT ON TABLE pairing_codes IS
    'One row per code that was shown and not used: at most one a player. Rows go when they are used, replaced or long expired.';
COMMENT ON COLUMN pairing_codes.locator IS 'The first half of the code, which finds the row; no secret.';
COMMENT ON COLUMN pairing_codes.player_id IS 'The player that the new device will belong to.';
COMMENT ON COLUMN pairing_codes.code_hash IS 'SHA-256 of the whole code. The code itself is stored nowhere.';
COMMENT ON COLUMN pairing_codes.created IS 'When it was made, by the server''s clock.';
COMMENT ON COLUMN pairing_codes.expires IS 'Until when it holds: ten minutes.';
COMMENT ON COLUMN pairing_codes.tries_left IS 'Tries that remain, of five; at 0 the code is dead.';
COMMENT ON INDEX pairing_codes_player_idx IS 'Finds the code that a player''s new one replaces.';
COMMENT ON INDEX pairing_codes_expires_idx IS 'Finds the codes that have expired, to remove them.';

CREATE FUNCTION create_pairing_code(player_in uuid, locator_in text, code_hash_in bytea) RETURNS timestamptz
LANGUAGE plpgsql AS $create$
DECLARE
    moment timestamptz := clock_timestamp();
    until  timestamptz;
BEGIN
    -- The player's row is the lock: of two codes that are made at once, the later one replaces the earlier.
    UPDATE players p SET last_revision = p.last_revision WHERE p.player_id = player_in;
    DELETE FROM pairing_codes c WHERE c.player_id = player_in OR c.expires <= moment;
    INSERT INTO pairing_codes (locator, player_id, code_hash, created, expires, tries_left)
    VALUES (locator_in, player_in, code_hash_in, moment, moment + interval '10 minutes', 5)
    ON CONFLICT (locator) DO NOTHING
    RETURNING expires INTO until;
    RETURN until;
END
$create$;
COMMENT ON FUNCTION create_pairing_code(uuid, text, bytea) IS
    'Stores a code of a player in place of the earlier one; returns until when it holds, or NULL where another''s code has the same locator.';

CREATE FUNCTION redeem_pairing_code(
    locator_in text, code_hash_in bytea, device_in uuid, name_in text, token_hash_in bytea)
RETURNS TABLE (player_id uuid, last_revision bigint)
LANGUAGE plpgsql AS $redeem$
#variable_conflict use_column
DECLARE
    owner uuid;
    known bytea;
BEGIN
    -- The try is counted, and the row locked, before the code is compared: of two that redeem at once the second finds
    -- no row. A wrong try is no error, or its count would be rolled back.
    UPDATE pairing_codes c SET tries_left = c.tries_left - 1
     WHERE c.locator = locator_in AND c.tries_left > 0 AND c.expires > clock_timestamp()
    RETURNING c.player_id, c.code_hash INTO owner, known;
    IF NOT FOUND OR known <> code_hash_in THEN
        RETURN;
    END IF;
    DELETE FROM pairing_codes c WHERE c.locator = locator_in;
    INSERT INTO devices (player_id, device_id, name, token_hash) VALUES (owner, device_in, name_in, token_hash_in);
    RETURN QUERY SELECT p.player_id, p.last_revision FROM players p WHERE p.player_id = owner;
END
$redeem$;
COMMENT ON FUNCTION redeem_pairing_code(text, bytea, uuid, text, bytea) IS
    'Uses a code up and signs a new device of its player up; returns the player and its last revision, or no row where the code is unknown, expired, used, dead or wrong.';
