-- 0003_games.sql: every version that was ever accepted, and the heads.
-- Locks: none (new tables). Older daemons: there are none.
--
-- Only push() writes these tables, and it checks player, device and base itself, set by set. They carry no foreign keys,
-- since a trigger for each row would cost a push more than the insert does.

CREATE TABLE game_versions (
    player_id  uuid NOT NULL,
    revision   bigint NOT NULL,
    device_id  uuid NOT NULL,
    saved      timestamptz NOT NULL,
    stamp      timestamptz NOT NULL,
    received   timestamptz NOT NULL,
    base       bigint,
    rival      bigint,
    schema     integer NOT NULL,
    size       integer NOT NULL,
    collection text COLLATE "C" NOT NULL,
    game_id    text COLLATE "C" NOT NULL,
    outcome    text COLLATE "C" NOT NULL,
    state      json,
    CONSTRAINT game_versions_pkey PRIMARY KEY (player_id, revision),
    CONSTRAINT game_versions_outcome_check CHECK (outcome IN ('advanced', 'created', 'won', 'lost'))
);
CREATE INDEX game_versions_saved_idx ON game_versions (player_id, game_id, saved);
COMMENT ON TABLE game_versions IS
    'Every accepted push, the losers of conflicts too. Rows are only added, never changed; retention alone removes some.';
COMMENT ON INDEX game_versions_saved_idx IS
    'Finds an earlier push of the same save, so that a repeated push adds nothing; and one game''s history.';
COMMENT ON COLUMN game_versions.player_id IS 'Whose game it is.';
COMMENT ON COLUMN game_versions.revision IS 'The version''s number in its player''s feed: 1, 2, 3 … in the order of the commits, without gaps.';
COMMENT ON COLUMN game_versions.device_id IS 'The device that pushed it.';
COMMENT ON COLUMN game_versions.saved IS 'When it was saved, by the device''s clock, which may be wrong.';
COMMENT ON COLUMN game_versions.stamp IS
    'What conflicts compare: saved, held down to 5 seconds after received, then raised to at least 1 microsecond after the stamp of the base.';
COMMENT ON COLUMN game_versions.received IS 'When it arrived, by the server''s clock.';
COMMENT ON COLUMN game_versions.base IS
    'The revision of this game that the device had last seen, as it said; 0: it believed the game new; NULL: it did not say.';
COMMENT ON COLUMN game_versions.rival IS 'For won and lost: the revision that it met, which was the head then. NULL otherwise.';
COMMENT ON COLUMN game_versions.schema IS 'The app''s schema version of the state.';
COMMENT ON COLUMN game_versions.size IS 'Octets of the state; 0 for a tombstone.';
COMMENT ON COLUMN game_versions.collection IS 'The type of the game, for example handle.game. In Unicode''s form NFC.';
COMMENT ON COLUMN game_versions.game_id IS 'The game, unique in its player''s collection. In Unicode''s form NFC.';
COMMENT ON COLUMN game_versions.outcome IS
    'created: the first of its game. advanced: its device had seen the head. won, lost: it met a rival that its device had not seen.';
COMMENT ON COLUMN game_versions.state IS
    'The game itself, byte for byte as pushed; NULL is a tombstone: this version deletes the game. Ask it with state->>''key''.';

CREATE TABLE games (
    player_id     uuid NOT NULL,
    head_revision bigint NOT NULL,
    stamp         timestamptz NOT NULL,
    saved         timestamptz NOT NULL,
    device_id     uuid NOT NULL,
    latest_saved  timestamptz NOT NULL,
    collection    text COLLATE "C" NOT NULL,
    game_id       text COLLATE "C" NOT NULL,
    CONSTRAINT games_pkey PRIMARY KEY (player_id, collection, game_id)
) WITH (fillfactor = 50);
COMMENT ON TABLE games IS 'One row per game: its head, the version that won. Its state is in game_versions, under head_revision.';
COMMENT ON COLUMN games.player_id IS 'Whose game it is.';
COMMENT ON COLUMN games.head_revision IS 'The revision of the head; no two games of a player share one.';
COMMENT ON COLUMN games.stamp IS 'The head''s stamp, copied here for the next push to compare with.';
COMMENT ON COLUMN games.saved IS 'The head''s saved, the second thing compared.';
COMMENT ON COLUMN games.device_id IS 'The head''s device, the third thing compared.';
COMMENT ON COLUMN games.latest_saved IS
    'The greatest saved of all the game''s versions, the losers'' too: a push with a greater one repeats none of them.';
COMMENT ON COLUMN games.collection IS 'The type of the game.';
COMMENT ON COLUMN games.game_id IS 'The game, unique in its player''s collection.';
