import Wire

/// A file's objects, inside the transaction that migrates them.
///
/// Rows keep their schema until the end, by which those are known that were there in the beginning. What an object was
/// before its first change is set aside in a temporary table.
final class FileRows: MigrationRows {
    private let transaction: StoreTransaction
    private let connection: SQLiteConnection
    private let oldVersion: Int64
    private let newVersion: Int64
    /// One change number for the whole migration.
    private let change: Int64
    private var isAside = false

    init(_ transaction: StoreTransaction, from oldVersion: Int, to newVersion: Int) throws {
        self.transaction = transaction
        connection = transaction.connection
        self.oldVersion = Int64(oldVersion)
        self.newVersion = Int64(newVersion)
        change = try transaction.nextChange()
    }

    var isWhole: Bool { true }

    func collections() throws -> Set<String> {
        var names: Set<String> = []
        try connection.rows("SELECT DISTINCT collection FROM games") { names.insert($0.text(0) ?? "") }
        return names
    }

    func keys(in collection: String) throws -> [GameKey] {
        var ids: [String] = []
        try connection.rows(
            "SELECT id FROM games WHERE collection = ? AND schema = ? AND state IS NOT NULL ORDER BY id",
            [.text(collection), .integer(oldVersion)]
        ) { row in ids.append(row.text(0) ?? "") }
        return try ids.map { try GameKey(collection: collection, id: $0) }
    }

    func read(_ key: GameKey) throws -> (before: [UInt8], now: [UInt8])? {
        guard let now = try state(of: key) else { return nil }
        guard isAside else { return (now, now) }
        var before = now
        try connection.rows(
            "SELECT state FROM temp.before WHERE collection = ? AND id = ?", [.text(key.collection), .text(key.id)]
        ) { row in before = row.bytes(0) ?? now }
        return (before, now)
    }

    func state(of key: GameKey) throws -> [UInt8]? {
        var state: [UInt8]?
        try connection.rows(
            "SELECT state FROM games WHERE collection = ? AND id = ? AND state IS NOT NULL",
            [.text(key.collection), .text(key.id)]
        ) { row in state = row.bytes(0) ?? [] }
        return state
    }

    /// Not an edit of the player's: who saved it and when, and whether it is sent, stay as they are.
    func change(_ key: GameKey, to state: [UInt8]) throws {
        if !isAside {
            try connection.run(
                """
                CREATE TEMP TABLE before (collection TEXT, id TEXT, state BLOB, PRIMARY KEY (collection, id))
                """)
            isAside = true
        }
        try connection.run(
            """
            INSERT OR IGNORE INTO temp.before SELECT collection, id, state FROM games WHERE collection = ? AND id = ?
            """, .text(key.collection), .text(key.id))
        try write(key, state, schema: oldVersion)
    }

    func create(_ key: GameKey, _ state: [UInt8]) throws {
        try transaction.save(key, state: state)
    }

    func delete(_ key: GameKey) throws {
        try transaction.save(key, state: nil)
    }

    func deleteAll(in collection: String) throws -> Bool {
        var ids: [String] = []
        try connection.rows(
            "SELECT id FROM games WHERE collection = ? AND state IS NOT NULL", [.text(collection)]
        ) { row in ids.append(row.text(0) ?? "") }
        for id in ids { try delete(GameKey(collection: collection, id: id)) }
        return !ids.isEmpty
    }

    /// Takes single rows up that came from devices with other schemas, each on its own: one that cannot be is left as it
    /// is, and says so when it is read.
    func climb(_ ladder: SchemaLadder) throws {
        var odd: [(key: GameKey, state: [UInt8], schema: Int)] = []
        try connection.rows(
            """
            SELECT collection, id, state, schema FROM games WHERE schema <> ? AND schema < ? AND state IS NOT NULL
            """, [.integer(oldVersion), .integer(newVersion)]
        ) { row in
            guard let key = try? GameKey(collection: row.text(0) ?? "", id: row.text(1) ?? "") else { return }
            odd.append((key, row.bytes(2) ?? [], Int(row.integer(3))))
        }
        for row in odd {
            guard let state = try? ladder.state(of: row.key, PersistedState(json: row.state), schema: row.schema)
            else { continue }
            try write(row.key, state.bytes, schema: newVersion)
        }
    }

    /// Gives all that was migrated the new schema.
    func finish() throws {
        try connection.run(
            "UPDATE games SET schema = ? WHERE schema = ?", .integer(newVersion), .integer(oldVersion))
        if isAside { try connection.run("DROP TABLE temp.before") }
    }

    private func write(_ key: GameKey, _ state: [UInt8], schema: Int64) throws {
        let timestamp = GameStore.timestamp(ofState: state)
        try connection.run(
            """
            UPDATE games SET state = ?, schema = ?, timestamp = coalesce(?, timestamp), change = ?, span = ?
             WHERE collection = ? AND id = ?
            """, .bytes(state), .integer(schema), timestamp.map { .integer($0) } ?? .null, .integer(change),
            .integer(StoreFile.span(of: change)), .text(key.collection), .text(key.id))
        transaction.noteChange(of: key.collection)
    }
}
