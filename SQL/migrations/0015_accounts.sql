-- 0015_accounts.sql: invites, revoking, other tokens, and forgetting a player. Documentation/operations.md tells it to people.
-- Locks: SHARE ROW EXCLUSIVE on devices and players for an instant (the foreign keys of new, empty tables): reads and pushes go on.
-- Older daemons go on too. They take no invites, refuse a token that waits for its first login, and hear of no revocation: a
-- session that they hold ends with its next push, as before. create_pairing_code() without a device is kept for them.
--
-- What ends sessions is written to session_ends, in the transaction that makes it so. Every daemon reads what is new there
-- several times a second, by the index of the moments; a notification only makes it look at once. It looks some seconds
-- back, since a transaction may commit a little after its moment; an end that is read twice ends nothing more.
--
-- Whoever changes a player's devices locks the player first, as push() does, by an UPDATE. So a device that is being revoked
-- makes no pairing code any more: the code is refused, or made before and then removed.

CREATE TABLE invites (
    locator   text COLLATE "C" NOT NULL,
    code_hash bytea NOT NULL,
    created   timestamptz NOT NULL,
    expires   timestamptz NOT NULL,
    redeemed  timestamptz,
    player_id uuid,
    CONSTRAINT invites_pkey PRIMARY KEY (locator),
    CONSTRAINT invites_locator_check CHECK (octet_length(locator) = 4),
    CONSTRAINT invites_code_hash_check CHECK (octet_length(code_hash) = 32),
    CONSTRAINT invites_redeemed_check CHECK ((redeemed IS NULL) = (player_id IS NULL))
);
CREATE INDEX invites_player_idx ON invites (player_id) WHERE player_id IS NOT NULL;
COMMENT ON TABLE invites IS
    'Codes by which the operator lets new players in, one each. `ieumd invite` makes, lists and cancels them. Rows go a month after they expired.';
COMMENT ON COLUMN invites.locator IS 'The first four characters of the code, which find the row and name it in lists; no secret.';
COMMENT ON COLUMN invites.code_hash IS 'SHA-256 of the whole code. The code itself is stored nowhere.';
COMMENT ON COLUMN invites.created IS 'When it was made, by the server''s clock.';
COMMENT ON COLUMN invites.expires IS 'Until when it may be used.';
COMMENT ON COLUMN invites.redeemed IS 'When it was used; NULL: it was not.';
COMMENT ON COLUMN invites.player_id IS 'The player that it let in. No foreign key: on a distributed database invites are not spread by player.';
COMMENT ON INDEX invites_player_idx IS 'Finds the invite of a player who is to be forgotten.';

CREATE TABLE token_rotations (
    player_id       uuid NOT NULL,
    device_id       uuid NOT NULL,
    generation      integer NOT NULL,
    next_token_hash bytea,
    CONSTRAINT token_rotations_pkey PRIMARY KEY (player_id, device_id),
    CONSTRAINT token_rotations_device_fkey FOREIGN KEY (player_id, device_id) REFERENCES devices (player_id, device_id) ON DELETE CASCADE,
    CONSTRAINT token_rotations_generation_check CHECK (generation >= 0),
    CONSTRAINT token_rotations_next_token_hash_check CHECK (octet_length(next_token_hash) = 32)
);
COMMENT ON TABLE token_rotations IS 'One row per device that ever asked for another token.';
COMMENT ON COLUMN token_rotations.player_id IS 'Whose device it is.';
COMMENT ON COLUMN token_rotations.device_id IS 'The device.';
COMMENT ON COLUMN token_rotations.generation IS
    'How often its token was replaced. A session that an earlier token signed in has a lower number, and is ended.';
COMMENT ON COLUMN token_rotations.next_token_hash IS
    'SHA-256 of the secret of the token that waits for its first login, and takes the place of devices.token_hash with it; NULL: none waits.';

CREATE TABLE session_ends (
    player_id  uuid NOT NULL,
    device_id  uuid NOT NULL,
    ended      timestamptz NOT NULL,
    generation integer,
    CONSTRAINT session_ends_pkey PRIMARY KEY (player_id, device_id)
);
CREATE INDEX session_ends_ended_idx ON session_ends (ended);
COMMENT ON TABLE session_ends IS
    'Which sessions are to end, told to all daemons: one row per device at most, whatever is asked how often. Rows go after some minutes.';
COMMENT ON COLUMN session_ends.player_id IS 'Whose sessions end.';
COMMENT ON COLUMN session_ends.device_id IS
    'The device whose sessions end; 00000000-0000-0000-0000-000000000000: all of the player''s, who is forgotten.';
COMMENT ON COLUMN session_ends.ended IS 'When it was said last, by the server''s clock.';
COMMENT ON COLUMN session_ends.generation IS
    'Only sessions that an earlier token of the device signed in end: those with a lower number. NULL: all of the device''s, which is revoked.';
COMMENT ON INDEX session_ends_ended_idx IS 'Finds what is new since a daemon looked last, and what is old enough to go.';

CREATE FUNCTION end_sessions(player_in uuid, device_in uuid DEFAULT NULL, generation_in integer DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $end$
DECLARE
    moment timestamptz := clock_timestamp();
    whose  uuid := coalesce(device_in, '00000000-0000-0000-0000-000000000000');
BEGIN
    INSERT INTO session_ends (player_id, device_id, ended, generation) VALUES (player_in, whose, moment, generation_in)
    ON CONFLICT (player_id, device_id) DO UPDATE SET ended = excluded.ended, generation = excluded.generation;
END
$end$;
COMMENT ON FUNCTION end_sessions(uuid, uuid, integer) IS
    'Tells all daemons that sessions are to end: those of a device, or only those of its tokens before a generation; without a device all of the player''s. The last thing that a transaction does, so that its moment is not long before its commit.';

CREATE FUNCTION register_player_by_invite(
    locator_in text, code_hash_in bytea, player_in uuid, device_in uuid, name_in text, token_hash_in bytea)
RETURNS boolean
LANGUAGE plpgsql AS $register$
DECLARE
    invite invites;
    salt   bytea := uuid_send(gen_random_uuid());
BEGIN
    -- Locks the row: of two that redeem at once the second finds it used.
    UPDATE invites AS i SET created = i.created WHERE i.locator = locator_in RETURNING i.* INTO invite;
    -- Digests with a random salt are compared: how long that takes tells nothing about the code's.
    IF NOT FOUND OR sha256(salt || invite.code_hash) <> sha256(salt || code_hash_in) THEN
        RETURN false;
    ELSIF invite.redeemed IS NOT NULL THEN
        RETURN invite.player_id = player_in;   -- the daemon repeats itself, after an answer of the database's was lost
    ELSIF invite.expires <= clock_timestamp() THEN
        RETURN false;
    END IF;
    PERFORM register_player(player_in, device_in, name_in, token_hash_in);
    UPDATE invites AS i SET redeemed = clock_timestamp(), player_id = player_in WHERE i.locator = locator_in;
    RETURN true;
END
$register$;
COMMENT ON FUNCTION register_player_by_invite(text, bytea, uuid, uuid, text, bytea) IS
    'Uses an invite up and signs a new player up with a first device, or does neither and returns false, where the invite is unknown, wrong, used or expired. Doing it again with the same ids, after an answer was lost, changes nothing.';

CREATE FUNCTION create_pairing_code(player_in uuid, device_in uuid, locator_in text, code_hash_in bytea, OUT is_valid boolean, OUT until timestamptz)
LANGUAGE plpgsql AS $create$
BEGIN
    UPDATE players AS p SET last_revision = p.last_revision WHERE p.player_id = player_in;
    is_valid := EXISTS (SELECT FROM devices AS d
                         WHERE d.player_id = player_in AND d.device_id = device_in AND d.revoked IS NULL);
    IF is_valid THEN
        until := create_pairing_code(player_in, locator_in, code_hash_in);
    END IF;
END
$create$;
COMMENT ON FUNCTION create_pairing_code(uuid, uuid, text, bytea) IS
    'create_pairing_code() for a device that asks: is_valid is false where it was revoked, and no code is made. until is NULL where another''s code has the same locator.';

CREATE FUNCTION rename_device(player_in uuid, device_by uuid, device_in uuid, name_in text) RETURNS text
LANGUAGE plpgsql AS $rename$
BEGIN
    UPDATE players AS p SET last_revision = p.last_revision WHERE p.player_id = player_in;
    IF NOT EXISTS (SELECT FROM devices AS d
                    WHERE d.player_id = player_in AND d.device_id = device_by AND d.revoked IS NULL) THEN
        RETURN 'revoked';
    END IF;
    UPDATE devices AS d SET name = name_in WHERE d.player_id = player_in AND d.device_id = device_in;
    RETURN CASE WHEN FOUND THEN 'done' ELSE 'unknown-device' END;
END
$rename$;
COMMENT ON FUNCTION rename_device(uuid, uuid, uuid, text) IS
    'Calls a device otherwise, asked by one of the same player''s. Answers done, unknown-device, or revoked where the one that asks is.';

CREATE FUNCTION revoke_device(player_in uuid, device_in uuid, device_by uuid DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $revoke$
BEGIN
    UPDATE players AS p SET last_revision = p.last_revision WHERE p.player_id = player_in;
    IF device_by IS NOT NULL AND NOT EXISTS (
        SELECT FROM devices AS d
         WHERE d.player_id = player_in AND d.device_id = device_by
           AND (d.revoked IS NULL OR device_by = device_in)) THEN   -- doing it again, after an answer was lost, changes nothing
        RETURN 'revoked';
    END IF;
    UPDATE devices AS d SET revoked = coalesce(d.revoked, clock_timestamp())
     WHERE d.player_id = player_in AND d.device_id = device_in;
    IF NOT FOUND THEN
        RETURN 'unknown-device';
    END IF;
    UPDATE token_rotations AS r SET next_token_hash = NULL
     WHERE r.player_id = player_in AND r.device_id = device_in AND r.next_token_hash IS NOT NULL;
    DELETE FROM pairing_codes AS c WHERE c.player_id = player_in;   -- it may have made the code
    PERFORM end_sessions(player_in, device_in);
    RETURN 'done';
END
$revoke$;
COMMENT ON FUNCTION revoke_device(uuid, uuid, uuid) IS
    'Ends a device: it may neither log in nor push, its sessions end, and the player''s pairing code with it. device_by: the device of the same player that asks; NULL: the operator does. Answers done, unknown-device, or revoked where the one that asks is.';

CREATE FUNCTION rotate_token(player_in uuid, device_in uuid, token_hash_in bytea) RETURNS text
LANGUAGE plpgsql AS $rotate$
BEGIN
    UPDATE players AS p SET last_revision = p.last_revision WHERE p.player_id = player_in;
    IF NOT EXISTS (SELECT FROM devices AS d
                    WHERE d.player_id = player_in AND d.device_id = device_in AND d.revoked IS NULL) THEN
        RETURN 'revoked';
    END IF;
    INSERT INTO token_rotations AS r (player_id, device_id, generation, next_token_hash)
    VALUES (player_in, device_in, 0, token_hash_in)
    ON CONFLICT (player_id, device_id) DO UPDATE SET next_token_hash = excluded.next_token_hash;
    RETURN 'done';
END
$rotate$;
COMMENT ON FUNCTION rotate_token(uuid, uuid, bytea) IS
    'Gives a device another token, which takes the place of its token with its first login; one that waited before is void. Answers done, or revoked.';

CREATE FUNCTION begin_token(player_in uuid, device_in uuid, token_hash_in bytea) RETURNS boolean
LANGUAGE plpgsql AS $begin$
DECLARE
    begun integer;
BEGIN
    UPDATE players AS p SET last_revision = p.last_revision WHERE p.player_id = player_in;
    UPDATE token_rotations AS r SET generation = r.generation + 1, next_token_hash = NULL
     WHERE r.player_id = player_in AND r.device_id = device_in AND r.next_token_hash = token_hash_in
    RETURNING r.generation INTO begun;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE devices AS d SET token_hash = token_hash_in WHERE d.player_id = player_in AND d.device_id = device_in;
    PERFORM end_sessions(player_in, device_in, begun);
    RETURN true;
END
$begin$;
COMMENT ON FUNCTION begin_token(uuid, uuid, bytea) IS
    'Puts the token that waited in the place of the device''s token; the sessions of the earlier one end. False: it does not wait any more, e.g. since it took its place already.';

CREATE FUNCTION begin_forgetting(player_in uuid) RETURNS boolean
LANGUAGE plpgsql AS $begin$
BEGIN
    UPDATE players AS p SET last_revision = p.last_revision WHERE p.player_id = player_in;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE devices AS d SET revoked = coalesce(d.revoked, clock_timestamp()), token_hash = decode(repeat('00', 32), 'hex')   -- no secret has this hash
     WHERE d.player_id = player_in;
    DELETE FROM token_rotations AS r WHERE r.player_id = player_in;
    DELETE FROM pairing_codes AS c WHERE c.player_id = player_in;
    PERFORM end_sessions(player_in);
    RETURN true;
END
$begin$;
COMMENT ON FUNCTION begin_forgetting(uuid) IS
    'Shuts a player''s devices out for good, before the player is removed. False: there is no such player.';

CREATE FUNCTION forget_versions(player_in uuid, page integer, OUT versions bigint, OUT octets bigint)
LANGUAGE sql AS $forget$
    WITH gone AS (
        DELETE FROM game_versions AS v
         WHERE v.player_id = player_in
           AND v.revision = ANY (ARRAY(SELECT o.revision FROM game_versions AS o
                                        WHERE o.player_id = player_in ORDER BY o.revision LIMIT page))
        RETURNING v.size)
    SELECT count(*), coalesce(sum(g.size), 0) FROM gone AS g;
$forget$;
COMMENT ON FUNCTION forget_versions(uuid, integer) IS
    'Removes the player''s oldest versions, so many at most, heads among them: only of a player who is being forgotten.';

CREATE FUNCTION finish_forgetting(
    player_in uuid, OUT is_found boolean, OUT versions bigint, OUT octets bigint, OUT games bigint, OUT devices bigint,
    OUT invites bigint)
LANGUAGE plpgsql AS $finish$
#variable_conflict use_column
BEGIN
    -- First what finish_import() locks first. Then the lock: who pushes, imports or joins now waits, and finds no player
    -- then. What was pushed before is seen below.
    DELETE FROM imports AS i WHERE i.player_id = player_in;
    UPDATE players AS p SET last_revision = p.last_revision WHERE p.player_id = player_in;
    is_found := FOUND;
    DELETE FROM pairing_codes AS c WHERE c.player_id = player_in;
    SELECT f.versions, f.octets INTO versions, octets FROM forget_versions(player_in, 2147483647) AS f;
    DELETE FROM games AS g WHERE g.player_id = player_in;
    GET DIAGNOSTICS games = ROW_COUNT;
    DELETE FROM token_rotations AS r WHERE r.player_id = player_in;
    DELETE FROM devices AS d WHERE d.player_id = player_in;
    GET DIAGNOSTICS devices = ROW_COUNT;
    DELETE FROM invites AS i WHERE i.player_id = player_in;
    GET DIAGNOSTICS invites = ROW_COUNT;
    DELETE FROM players AS p WHERE p.player_id = player_in;
    -- No import can stage anything any more: what was staged until now is seen.
    DELETE FROM import_versions AS v WHERE v.player_id = player_in;
    DELETE FROM import_devices AS d WHERE d.player_id = player_in;
    IF is_found THEN
        PERFORM end_sessions(player_in);
    END IF;
END
$finish$;
COMMENT ON FUNCTION finish_forgetting(uuid) IS
    'Removes what is left of a player: in one transaction, so that nothing can be pushed between. Says what was removed. The player''s id alone stays in session_ends, for some minutes.';

REVOKE EXECUTE ON FUNCTION begin_forgetting(uuid), forget_versions(uuid, integer), finish_forgetting(uuid) FROM PUBLIC;
