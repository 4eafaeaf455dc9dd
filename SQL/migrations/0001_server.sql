-- 0001_server.sql: the epoch, which names this life of the database.
-- Locks: none (new table). Older daemons: there are none.

CREATE TABLE server (
    only_row boolean NOT NULL DEFAULT true,
    epoch    uuid NOT NULL DEFAULT gen_random_uuid(),
    since    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT server_pkey PRIMARY KEY (only_row),
    CONSTRAINT server_only_row_check CHECK (only_row)
);
COMMENT ON TABLE server IS
    'One row: what this database says of itself. A device that meets another epoch than the one it knows pulls all and offers all it holds.';
COMMENT ON COLUMN server.only_row IS 'Always true: the key that keeps the table at one row.';
COMMENT ON COLUMN server.epoch IS
    'Names this life of the database. Made anew at the first migration and by `ieumd restore-epoch` after a backup was restored.';
COMMENT ON COLUMN server.since IS 'When this epoch began, by the server''s clock.';

INSERT INTO server DEFAULT VALUES;
