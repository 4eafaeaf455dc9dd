import CLibPQ
import FoundationEssentials

/// The rows that one statement answered, owned until the last reference goes.
///
/// Rows and columns count from 0. Every getter checks row, column, NULL, type and length, and throws a
/// ``DatabaseError`` of kind `.protocol` where they do not fit: a query changed on the other side is an error, never
/// a trap. Results of ``DatabaseConnection`` and ``BlockingConnection/query(_:_:)`` are binary; those of
/// ``BlockingConnection/execute(_:)`` are text, of which only integers, truth values, UUIDs, texts and bytes as they
/// stand are read.
public final class QueryResult {
    private let result: OpaquePointer
    /// The number of rows.
    public let rowCount: Int
    /// The number of columns.
    public let columnCount: Int

    /// Takes over a result of libpq's.
    init(taking result: OpaquePointer) {
        self.result = result
        rowCount = Int(PQntuples(result))
        columnCount = Int(PQnfields(result))
    }

    deinit {
        PQclear(result)
    }

    /// The command as the server names it, such as `SELECT 3` or `CREATE TABLE`; empty for an empty query.
    public var commandTag: String { String(cString: PQcmdStatus(result)) }

    /// How many rows the statement returned, inserted, updated or deleted; 0 for others.
    public var affectedRowCount: Int { Int(String(cString: PQcmdTuples(result))) ?? 0 }

    /// The columns' names in order.
    public var columnNames: [String] {
        (0..<columnCount).map { column in PQfname(result, Int32(column)).map { String(cString: $0) } ?? "" }
    }

    /// The number of the first column of that name.
    public func column(named name: String) throws(DatabaseError) -> Int {
        guard let column = columnNames.firstIndex(of: name) else {
            throw DatabaseError(.protocol, "the result has no column \(name)")
        }
        return column
    }

    /// The type of a column.
    public func type(ofColumn column: Int) throws(DatabaseError) -> PostgresType {
        guard (0..<columnCount).contains(column) else {
            throw DatabaseError(.protocol, "the result has \(columnCount) columns, column \(column) was asked for")
        }
        return PostgresType(rawValue: PQftype(result, Int32(column)))
    }

    /// Whether a field is NULL.
    public func isNull(_ row: Int, _ column: Int) throws(DatabaseError) -> Bool {
        try checkField(row, column)
        return PQgetisnull(result, Int32(row), Int32(column)) == 1
    }

    /// The field's bytes as the server sent them, in place: valid while this result lives, so copy what must stay.
    public func bytes(_ row: Int, _ column: Int) throws(DatabaseError) -> UnsafeRawBufferPointer {
        guard try !isNull(row, column) else { throw mismatch(row, column, "a value", found: "NULL") }
        // Checked to be a field that is not NULL, for which libpq gives a pointer to `length` bytes and a NUL.
        return UnsafeRawBufferPointer(
            start: PQgetvalue(result, Int32(row), Int32(column)),
            count: Int(PQgetlength(result, Int32(row), Int32(column))))
    }

    /// A copy of the field's bytes.
    public func byteArray(_ row: Int, _ column: Int) throws(DatabaseError) -> [UInt8] {
        Array(try bytes(row, column))
    }

    /// Lends the field's bytes to `body`.
    public func withSpan<Value>(
        _ row: Int, _ column: Int, _ body: (Span<UInt8>) throws(DatabaseError) -> Value
    ) throws(DatabaseError) -> Value {
        defer { withExtendedLifetime(self) {} }
        return try body(try bytes(row, column).bindMemory(to: UInt8.self).span)
    }

    /// An integer of two, four or eight bytes.
    public func int8(_ row: Int, _ column: Int) throws(DatabaseError) -> Int64 {
        let raw = try bytes(row, column)
        if isText(column) {
            guard let value = Int64(String(decoding: raw, as: UTF8.self)) else {
                throw mismatch(row, column, "an integer")
            }
            return value
        }
        switch (try type(ofColumn: column), raw.count) {
        case (.int8, 8): return raw.bigEndian(Int64.self)
        case (.int4, 4): return Int64(raw.bigEndian(Int32.self))
        case (.int2, 2): return Int64(raw.bigEndian(Int16.self))
        default: throw mismatch(row, column, "an integer")
        }
    }

    /// An integer of two, four or eight bytes that fits four.
    public func int4(_ row: Int, _ column: Int) throws(DatabaseError) -> Int32 {
        let value = try int8(row, column)
        guard let small = Int32(exactly: value) else { throw mismatch(row, column, "a four-byte integer") }
        return small
    }

    /// A truth value.
    public func bool(_ row: Int, _ column: Int) throws(DatabaseError) -> Bool {
        let raw = try bytes(row, column)
        guard try type(ofColumn: column) == .bool, raw.count == 1 else { throw mismatch(row, column, "a boolean") }
        switch (isText(column), raw[0]) {
        case (false, 0), (true, UInt8(ascii: "f")): return false
        case (false, 1), (true, UInt8(ascii: "t")): return true
        default: throw mismatch(row, column, "a boolean")
        }
    }

    /// A UUID.
    public func uuid(_ row: Int, _ column: Int) throws(DatabaseError) -> UUID {
        let raw = try bytes(row, column)
        guard try type(ofColumn: column) == .uuid else { throw mismatch(row, column, "a UUID") }
        if isText(column) {
            guard let value = UUID(uuidString: String(decoding: raw, as: UTF8.self)) else {
                throw mismatch(row, column, "a UUID")
            }
            return value
        }
        guard raw.count == 16 else { throw mismatch(row, column, "a UUID") }
        return UUID(uuid: raw.loadUnaligned(as: uuid_t.self))
    }

    /// A text, name, varchar or json; in a text result any field as it stands.
    public func text(_ row: Int, _ column: Int) throws(DatabaseError) -> String {
        let raw = try bytes(row, column)
        let type = try type(ofColumn: column)
        guard isText(column) || type.isTextual,
            let value = String(validating: raw, as: UTF8.self)
        else { throw mismatch(row, column, "a text in UTF-8") }
        return value
    }

    /// A `timestamptz` in microseconds since 1970; the extremes of Int64 are `-infinity` and `infinity`.
    public func microsecondsSince1970(_ row: Int, _ column: Int) throws(DatabaseError) -> Int64 {
        let raw = try bytes(row, column)
        guard try type(ofColumn: column) == .timestamptz, !isText(column), raw.count == 8,
            let value = PostgresTime.unix(fromWire: raw.bigEndian(Int64.self))
        else { throw mismatch(row, column, "a time before the year 294247") }
        return value
    }

    func isText(_ column: Int) -> Bool {
        PQfformat(result, Int32(column)) == 0
    }

    private func checkField(_ row: Int, _ column: Int) throws(DatabaseError) {
        guard (0..<rowCount).contains(row), (0..<columnCount).contains(column) else {
            throw DatabaseError(
                .protocol,
                "the result has \(rowCount) rows of \(columnCount) columns, row \(row) column \(column) was asked for")
        }
    }

    func mismatch(_ row: Int, _ column: Int, _ wanted: String, found: String? = nil) -> DatabaseError {
        let name = PQfname(result, Int32(column)).map { String(cString: $0) } ?? "\(column)"
        let found =
            found ?? "type \(PQftype(result, Int32(column))) in \(PQgetlength(result, Int32(row), Int32(column))) bytes"
        return DatabaseError(.protocol, "column \(name) of row \(row) is not \(wanted) but \(found)")
    }
}

extension UnsafeRawBufferPointer {
    /// An integer in network order from the start of the bytes, which must be long enough.
    func bigEndian<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type) -> Value {
        Value(bigEndian: loadUnaligned(as: type))
    }
}
