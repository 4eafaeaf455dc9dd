import CSQLite

/// What one writes who keeps the same bytes in SQLite by hand: a table, and prepared statements that are kept.
///
/// The pragmas are the store's, so that both keep what they were given through a power cut: WAL, `synchronous = FULL`.
final class PlainTable {
    private let handle: OpaquePointer
    private var upsert: OpaquePointer?

    init(_ path: String) throws {
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        guard sqlite3_open_v2(path, &handle, flags, nil) == SQLITE_OK, let handle else {
            sqlite3_close_v2(handle)
            throw BenchError("cannot open \(path)")
        }
        self.handle = handle
        try run("PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL")
        try run(
            """
            CREATE TABLE IF NOT EXISTS games (id TEXT PRIMARY KEY, timestamp INTEGER NOT NULL, state BLOB NOT NULL);
            CREATE INDEX IF NOT EXISTS games_latest ON games (timestamp);
            """)
    }

    deinit {
        sqlite3_finalize(upsert)
        sqlite3_close_v2(handle)
    }

    func transaction(_ body: () throws -> Void) throws {
        try run("BEGIN IMMEDIATE")
        try body()
        try run("COMMIT")
    }

    func upsert(id: String, timestamp: Int64, state: [UInt8]) throws {
        if upsert == nil {
            upsert = try prepare(
                """
                INSERT INTO games (id, timestamp, state) VALUES (?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET timestamp = excluded.timestamp, state = excluded.state
                """)
        }
        sqlite3_bind_text64(upsert, 1, id, UInt64(id.utf8.count), ieum_sqlite_transient(), UInt8(SQLITE_UTF8))
        sqlite3_bind_int64(upsert, 2, timestamp)
        sqlite3_bind_blob64(upsert, 3, state, UInt64(state.count), ieum_sqlite_transient())
        let status = sqlite3_step(upsert)
        sqlite3_reset(upsert)
        guard status == SQLITE_DONE else { throw failure() }
    }

    /// The state of the latest game; empty: there is none.
    func latest() throws -> [UInt8] {
        let statement = try prepare("SELECT state FROM games ORDER BY timestamp DESC LIMIT 1")
        defer { sqlite3_finalize(statement) }
        guard sqlite3_step(statement) == SQLITE_ROW, let bytes = sqlite3_column_blob(statement, 0) else { return [] }
        return Array(UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(statement, 0))))
    }

    private func prepare(_ sql: String) throws -> OpaquePointer? {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil) == SQLITE_OK
        else {
            throw failure()
        }
        return statement
    }

    private func run(_ sql: String) throws {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw failure() }
    }

    private func failure() -> BenchError { BenchError("SQLite: \(String(cString: sqlite3_errmsg(handle)))") }
}
