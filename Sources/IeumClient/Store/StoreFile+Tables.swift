import Foundation

/// The tables, and how they came to be as they are.
extension StoreFile {
    /// Those of the sync engine are its own.
    static let schema =
        """
        CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

        """ + games + indexes

    /// There is no counter of changes: the last one is the greatest in here, whose rows are never removed. The state comes last,
    /// since what stands behind it would be read through all of it. Whoever forgets `span` is told.
    private static let games = """
        CREATE TABLE games (
            collection TEXT NOT NULL, id TEXT NOT NULL, change INTEGER NOT NULL,
            span INTEGER NOT NULL CHECK (span = change / \(changesOfSpan)), timestamp INTEGER NOT NULL,
            schema INTEGER NOT NULL, saved INTEGER NOT NULL, stamp INTEGER, base INTEGER, device BLOB,
            unsent INTEGER NOT NULL, state BLOB, PRIMARY KEY (collection, id));

        """

    /// Each is one more page that a save writes; `games_unsent` only when a game becomes unsent, and `games_changed` only with
    /// every 16th save of one game: it has no changes, but spans of them, through which one looks.
    private static let indexes = """
        CREATE INDEX games_latest ON games (collection, timestamp, id) WHERE state IS NOT NULL;
        CREATE INDEX games_changed ON games (span, collection);
        CREATE INDEX games_unsent ON games (unsent) WHERE unsent <> 0;

        """

    /// How many changes are in a span.
    private static let changesOfSpan: Int64 = 16

    /// The span of a change.
    static func span(of change: Int64) -> Int64 { change / changesOfSpan }

    /// Makes the tables, or brings those of an older format up.
    func makeTables(_ connection: SQLiteConnection) throws(StoreError) {
        try connection.script("BEGIN IMMEDIATE")
        do throws(StoreError) {
            // Another process may have been faster.
            let isNew = try connection.integer("PRAGMA application_id") != Self.applicationID
            let format = try connection.integer("PRAGMA user_version") ?? 0
            if isNew {
                try connection.script(Self.schema + SyncTables.schema)
            } else if format < Self.format {
                if format < 2 {
                    try connection.script("DELETE FROM meta WHERE key = 'change';\n" + SyncTables.schema)
                }
                // The indexes go with the table.
                try connection.script(
                    """
                    ALTER TABLE games RENAME TO games_before;
                    \(Self.games)
                    INSERT INTO games (
                        collection, id, change, span, timestamp, schema, saved, stamp, base, device, unsent, state)
                    SELECT collection, id, change, change / \(Self.changesOfSpan), timestamp, schema, saved, stamp, base, device,
                           unsent, state FROM games_before ORDER BY rowid;
                    DROP TABLE games_before;

                    """ + Self.indexes)
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
