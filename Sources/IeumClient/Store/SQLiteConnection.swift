import CSQLite
import Foundation

/// The one owner of a connection's handle and of its prepared statements, each kept for its next use.
///
/// Not for two threads at a time: whoever owns the connection sees to that.
final class SQLiteConnection {
    /// The file, as errors name it.
    let path: String
    /// The handle, for those who work beside the store in its transactions.
    let handle: OpaquePointer
    private var statements: [String: SQLiteStatement] = [:]

    init(path: String, flags: Int32, busyMilliseconds: Int32 = 10_000) throws(StoreError) {
        var handle: OpaquePointer?
        let status = sqlite3_open_v2(path, &handle, flags | SQLITE_OPEN_NOMUTEX, nil)
        guard status == SQLITE_OK, let handle else {
            let error = StoreError(
                sqlite: status, message: handle.map { String(cString: sqlite3_errmsg($0)) },
                path: path, context: "open", system: handle.map { sqlite3_system_errno($0) } ?? 0)
            sqlite3_close_v2(handle)
            throw error
        }
        self.path = path
        self.handle = handle
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, busyMilliseconds)
    }

    deinit {
        statements = [:]
        sqlite3_close_v2(handle)
    }

    /// Runs a statement to its end, and forgets its rows.
    func run(_ sql: String, _ values: SQLiteValue...) throws(StoreError) {
        try run(sql, values)
    }

    /// Runs a statement to its end, and forgets its rows.
    func run(_ sql: String, _ values: [SQLiteValue]) throws(StoreError) {
        let statement = try statement(sql, values)
        defer { statement.end() }
        while try statement.step() {}
    }

    /// Runs a statement, and hands over each row; a row is valid during the call.
    func rows(_ sql: String, _ values: [SQLiteValue] = [], _ body: (SQLiteStatement) throws(StoreError) -> Void)
        throws(StoreError)
    {
        let statement = try statement(sql, values)
        defer { statement.end() }
        while try statement.step() { try body(statement) }
    }

    /// The first row's first column.
    func integer(_ sql: String, _ values: SQLiteValue...) throws(StoreError) -> Int64? {
        let statement = try statement(sql, values)
        defer { statement.end() }
        return try statement.step() ? statement.integer(0) : nil
    }

    /// The first row's first column.
    func text(_ sql: String, _ values: SQLiteValue...) throws(StoreError) -> String? {
        let statement = try statement(sql, values)
        defer { statement.end() }
        return try statement.step() ? statement.text(0) : nil
    }

    /// Runs statements that are used once.
    func script(_ sql: String) throws(StoreError) {
        let status = sqlite3_exec(handle, sql, nil, nil, nil)
        guard status == SQLITE_OK else { throw failure(status, sql) }
    }

    /// How many rows the last statement has changed.
    var changes: Int { Int(sqlite3_changes(handle)) }

    /// How many rows were changed since the opening.
    var totalChanges: Int64 { sqlite3_total_changes64(handle) }

    /// A number that any change of the file makes another one, by this connection or by others, as far as a transaction has seen.
    var dataVersion: UInt32? {
        var version: UInt32 = 0
        let status = sqlite3_file_control(handle, "main", SQLITE_FCNTL_DATA_VERSION, &version)
        return status == SQLITE_OK ? version : nil
    }

    /// Whether the file that was opened is no longer at its path: removed, renamed, or another one put in its place.
    var hasFileMoved: Bool {
        var hasMoved: Int32 = 0
        let status = sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &hasMoved)
        return status == SQLITE_OK && hasMoved != 0
    }

    /// Whether a transaction is open: SQLite ends one by itself when a disk is full.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    func failure(_ status: Int32, _ sql: String) -> StoreError {
        StoreError(
            sqlite: sqlite3_extended_errcode(handle) == SQLITE_OK ? status : sqlite3_extended_errcode(handle),
            message: String(cString: sqlite3_errmsg(handle)), path: path, context: sql,
            system: sqlite3_system_errno(handle))
    }

    private func statement(_ sql: String, _ values: [SQLiteValue]) throws(StoreError) -> SQLiteStatement {
        let statement: SQLiteStatement
        if let known = statements[sql], !known.isInUse {
            statement = known
        } else {
            statement = try SQLiteStatement(sql, on: self)
            if statements[sql] == nil { statements[sql] = statement }
        }
        statement.isInUse = true
        do throws(StoreError) {
            for (index, value) in values.enumerated() { try statement.bind(value, Int32(index + 1)) }
        } catch {
            statement.end()
            throw error
        }
        return statement
    }
}

/// A parameter of a statement.
enum SQLiteValue {
    case null
    case integer(Int64)
    case text(String)
    case bytes([UInt8])

    /// Bytes, or NULL where there are none.
    static func bytes(_ bytes: [UInt8]?) -> SQLiteValue { bytes.map { .bytes($0) } ?? .null }
}

/// A prepared statement and, while it runs, its row.
final class SQLiteStatement {
    private let handle: OpaquePointer
    private let connection: OpaquePointer
    private let path: String
    private let sql: String
    fileprivate(set) var isInUse = false

    fileprivate init(_ sql: String, on connection: SQLiteConnection) throws(StoreError) {
        var handle: OpaquePointer?
        let status = sqlite3_prepare_v3(
            connection.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
        guard status == SQLITE_OK, let handle else { throw connection.failure(status, sql) }
        self.handle = handle
        self.connection = connection.handle
        self.path = connection.path
        self.sql = sql
    }

    deinit {
        sqlite3_finalize(handle)
    }

    /// Whether there is one more row.
    func step() throws(StoreError) -> Bool {
        let status = sqlite3_step(handle)
        switch status {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw failure(status)
        }
    }

    /// Ready for the next use.
    func end() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
        isInUse = false
    }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    func text(_ column: Int32) -> String? { bytes(column).map { String(decoding: $0, as: UTF8.self) } }

    func bytes(_ column: Int32) -> [UInt8]? {
        guard !isNull(column) else { return nil }
        guard let bytes = sqlite3_column_blob(handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(handle, column))))
    }

    /// Whether a column holds these bytes; nothing is copied.
    func holds(_ bytes: [UInt8], _ column: Int32) -> Bool {
        guard !isNull(column) else { return false }
        let stored = UnsafeRawBufferPointer(
            start: sqlite3_column_blob(handle, column), count: Int(sqlite3_column_bytes(handle, column)))
        return bytes.withUnsafeBytes { bytes in
            guard bytes.count == stored.count, let start = bytes.baseAddress, let other = stored.baseAddress else {
                return bytes.count == stored.count
            }
            return memcmp(start, other, bytes.count) == 0
        }
    }

    fileprivate func bind(_ value: SQLiteValue, _ index: Int32) throws(StoreError) {
        let status =
            switch value {
            case .null: sqlite3_bind_null(handle, index)
            case .integer(let number): sqlite3_bind_int64(handle, index, number)
            case .text(let text):
                sqlite3_bind_text64(
                    handle, index, text, UInt64(text.utf8.count), ieum_sqlite_transient(), UInt8(SQLITE_UTF8))
            case .bytes(let bytes):
                bytes.isEmpty
                    ? sqlite3_bind_zeroblob(handle, index, 0)
                    : sqlite3_bind_blob64(handle, index, bytes, UInt64(bytes.count), ieum_sqlite_transient())
            }
        guard status == SQLITE_OK else { throw failure(status) }
    }

    private func failure(_ status: Int32) -> StoreError {
        StoreError(
            sqlite: sqlite3_extended_errcode(connection), message: String(cString: sqlite3_errmsg(connection)),
            path: path, context: sql, system: sqlite3_system_errno(connection))
    }
}

extension StoreError {
    /// What a call of SQLite's returned.
    init(sqlite code: Int32, message: String?, path: String, context: String, system: Int32 = 0) {
        let failure = SQLiteFailure(code: code & 0xFF, extendedCode: code, context: context)
        let said = message ?? String(cString: sqlite3_errstr(code))
        switch failure.code {
        case SQLITE_FULL:
            self.init(
                .diskFull, "\(path): the disk is full", hint: "Nothing was changed. Free some space and save again.",
                sqlite: failure)
        case SQLITE_READONLY:
            self.init(
                .readOnly, "\(path) cannot be written", hint: "Give the app write access to the file and its folder.",
                sqlite: failure)
        case SQLITE_BUSY, SQLITE_LOCKED:
            self.init(
                .busy, "\(path) is kept by another process", hint: "Try again.", sqlite: failure)
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            self.init(
                .damaged, "\(path) is damaged: \(said)",
                hint: "The next opening sets the file aside and begins a new one, which the server fills again.",
                sqlite: failure)
        case SQLITE_CANTOPEN:
            self.init(
                .cannotOpen,
                "\(path) cannot be opened\(system == 0 ? "" : ": \(String(cString: strerror(system)))")",
                hint: "The folder must exist and the app must be allowed to write in it.", sqlite: failure)
        case SQLITE_IOERR where system == ENOSPC || system == EDQUOT:
            self.init(
                .diskFull, "\(path): the disk is full", hint: "Nothing was changed. Free some space and save again.",
                sqlite: failure)
        default:
            self.init(.sqlite, "\(path): \(said) (SQLite \(code))", sqlite: failure)
        }
    }
}
