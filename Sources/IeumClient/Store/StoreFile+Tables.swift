import Foundation

/// The tables, and how they came to be as they are.
extension StoreFile {
    /// Those of the sync engine are its own. There is no counter of changes: the last one is the greatest in `games`, whose
    /// rows are never removed.
    static let schema =
        """
        CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
        CREATE TABLE games (
            collection TEXT NOT NULL, id TEXT NOT NULL, state BLOB, timestamp INTEGER NOT NULL,
            schema INTEGER NOT NULL, saved INTEGER NOT NULL, stamp INTEGER, base INTEGER, device BLOB,
            unsent INTEGER NOT NULL, change INTEGER NOT NULL, PRIMARY KEY (collection, id));

        """ + indexes

    /// Each is one more page that a save writes; `games_unsent` only when a game becomes unsent.
    private static let indexes = """
        CREATE INDEX games_latest ON games (collection, timestamp, id) WHERE state IS NOT NULL;
        CREATE INDEX games_changed ON games (change, collection);
        CREATE INDEX games_unsent ON games (unsent) WHERE unsent <> 0;

        """

    /// Makes the tables, or brings those of an older format up.
    func makeTables(_ connection: SQLiteConnection) throws(StoreError) {
        try connection.script("BEGIN IMMEDIATE")
        do throws(StoreError) {
            // Another process may have been faster.
            let isNew = try connection.integer("PRAGMA application_id") != Self.applicationID
            let format = try connection.integer("PRAGMA user_version") ?? 0
            if isNew {
                try connection.script(Self.schema + SyncTables.schema)
            } else if format < 2 {
                try connection.script(
                    """
                    DROP INDEX games_latest; DROP INDEX games_changed; DROP INDEX IF EXISTS games_unsent;
                    DELETE FROM meta WHERE key = 'change';

                    """ + Self.indexes + SyncTables.schema)
            }
            if isNew || format < 2 {
                try connection.run(
                    "INSERT INTO meta (key, value) VALUES (?, ?)", .text(Self.storeKey),
                    .text(UUID().uuidString.lowercased()))
            }
            try connection.script(
                "PRAGMA application_id = \(Self.applicationID); PRAGMA user_version = \(Self.format); COMMIT")
        } catch {
            if connection.isInTransaction { try? connection.run("ROLLBACK") }
            // An index or a table that is not there: the catalogue is damaged.
            throw error.sqlite?.code == 1
                ? StoreError(sqlite: 11, message: error.message, path: path, context: "open") : error
        }
    }
}
