import CSQLite

/// Prepared statements of one connection, each kept for its next use.
final class SyncStatements {
    /// A parameter.
    enum Value {
        case null
        case integer(Int64)
        case text(String)
        case bytes([UInt8]?)
    }

    /// What SQLite said.
    struct Failure: Error, CustomStringConvertible {
        let code: Int32
        let description: String
    }

    /// A row, valid during the call that it is handed to.
    struct Row {
        fileprivate let statement: OpaquePointer

        func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }

        func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

        func text(_ column: Int32) -> String? { bytes(column).map { String(decoding: $0, as: UTF8.self) } }

        func bytes(_ column: Int32) -> [UInt8]? {
            guard !isNull(column) else { return nil }
            guard let bytes = sqlite3_column_blob(statement, column) else { return [] }
            return Array(UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(statement, column))))
        }
    }

    private let connection: OpaquePointer
    private var prepared: [String: OpaquePointer] = [:]

    init(_ connection: OpaquePointer) {
        self.connection = connection
    }

    deinit {
        for statement in prepared.values { sqlite3_finalize(statement) }
    }

    func run(_ sql: String, _ values: [Value] = []) throws {
        try rows(sql, values) { _ in }
    }

    func integer(_ sql: String) throws -> Int64 {
        var value: Int64 = 0
        try rows(sql) { value = $0.integer(0) }
        return value
    }

    func rows(_ sql: String, _ values: [Value] = [], _ body: (Row) throws -> Void) throws {
        let statement = try statement(sql)
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (index, value) in values.enumerated() { try bind(value, Int32(index + 1), statement) }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: try body(Row(statement: statement))
            case SQLITE_DONE: return
            default: throw failure()
            }
        }
    }

    private func statement(_ sql: String) throws -> OpaquePointer {
        if let known = prepared[sql] { return known }
        var statement: OpaquePointer?
        guard sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil) == SQLITE_OK,
            let statement
        else { throw failure() }
        prepared[sql] = statement
        return statement
    }

    private func bind(_ value: Value, _ index: Int32, _ statement: OpaquePointer) throws {
        let status =
            switch value {
            case .null, .bytes(nil): sqlite3_bind_null(statement, index)
            case .integer(let number): sqlite3_bind_int64(statement, index, number)
            case .text(let text):
                sqlite3_bind_text(statement, index, text, Int32(clamping: text.utf8.count), ieum_sqlite_transient())
            case .bytes(let bytes?):
                bytes.isEmpty
                    ? sqlite3_bind_zeroblob(statement, index, 0)
                    : sqlite3_bind_blob(
                        statement, index, bytes, Int32(clamping: bytes.count), ieum_sqlite_transient())
            }
        guard status == SQLITE_OK else { throw failure() }
    }

    private func failure() -> Failure {
        Failure(code: sqlite3_extended_errcode(connection), description: String(cString: sqlite3_errmsg(connection)))
    }
}
