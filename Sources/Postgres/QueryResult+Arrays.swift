import FoundationEssentials

/// Fields that are arrays of one dimension, in binary form: the counterpart of ``BinaryArray``.
///
/// Whatever the bytes are, reading them ends with all elements or with a ``DatabaseError`` of kind `.protocol`: a wrong
/// type, a second dimension, a length that does not fit, bytes left over. Source: `array_send` in PostgreSQL's arrayfuncs.c.
extension QueryResult {
    /// The elements of an `int8[]`.
    public func int8Array(_ row: Int, _ column: Int) throws(DatabaseError) -> [Int64?] {
        try elements(row, column, .int8Array, of: .int8) { $0.count == 8 ? $0.bigEndian(Int64.self) : nil }
    }

    /// The elements of an `int4[]`.
    public func int4Array(_ row: Int, _ column: Int) throws(DatabaseError) -> [Int32?] {
        try elements(row, column, .int4Array, of: .int4) { $0.count == 4 ? $0.bigEndian(Int32.self) : nil }
    }

    /// The elements of a `text[]`.
    public func textArray(_ row: Int, _ column: Int) throws(DatabaseError) -> [String?] {
        try elements(row, column, .textArray, of: .text) { String(validating: $0, as: UTF8.self) }
    }

    /// Copies of the elements' bytes of a `json[]`.
    public func jsonArray(_ row: Int, _ column: Int) throws(DatabaseError) -> [[UInt8]?] {
        try elements(row, column, .jsonArray, of: .json) { Array($0) }
    }

    /// The elements of a `uuid[]`.
    public func uuidArray(_ row: Int, _ column: Int) throws(DatabaseError) -> [UUID?] {
        try elements(row, column, .uuidArray, of: .uuid) {
            $0.count == 16 ? UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) : nil
        }
    }

    /// The elements of a `timestamptz[]`, as ``microsecondsSince1970(_:_:)`` gives one.
    public func microsecondsSince1970Array(_ row: Int, _ column: Int) throws(DatabaseError) -> [Int64?] {
        try elements(row, column, .timestamptzArray, of: .timestamptz) {
            $0.count == 8 ? PostgresTime.unix(fromWire: $0.bigEndian(Int64.self)) : nil
        }
    }

    /// - Parameter read: an element from its bytes; nil where they are none of its type.
    private func elements<Element>(
        _ row: Int, _ column: Int, _ type: PostgresType, of elementType: PostgresType,
        _ read: (UnsafeRawBufferPointer) -> Element?
    ) throws(DatabaseError) -> [Element?] {
        let raw = try bytes(row, column)
        guard try self.type(ofColumn: column) == type, !isText(column),
            let elements = Self.elements(raw, of: elementType, read)
        else { throw mismatch(row, column, "an array as was asked for") }
        return elements
    }

    /// Number of dimensions, NULL flag and element type; then, unless it is empty, number of elements and index of the
    /// first; then length and bytes of each, where a length of -1 is NULL.
    static func elements<Element>(
        _ raw: UnsafeRawBufferPointer, of elementType: PostgresType, _ read: (UnsafeRawBufferPointer) -> Element?
    ) -> [Element?]? {
        var rest = raw
        func next() -> Int32? {
            guard rest.count >= 4 else { return nil }
            defer { rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(4)) }
            return rest.bigEndian(Int32.self)
        }
        guard let dimensions = next(), next() != nil, let type = next(),
            UInt32(bitPattern: type) == elementType.rawValue
        else { return nil }
        if dimensions == 0 { return rest.isEmpty ? [] : nil }
        // Each element takes four bytes at least: a count that lies reserves no more memory than the field has.
        guard dimensions == 1, let count = next(), next() == 1, count > 0, Int(count) <= rest.count / 4 else {
            return nil
        }
        var elements: [Element?] = []
        elements.reserveCapacity(Int(count))
        for _ in 0..<count {
            guard let length = next() else { return nil }
            if length == -1 {
                elements.append(nil)
                continue
            }
            guard length >= 0, Int(length) <= rest.count,
                let element = read(UnsafeRawBufferPointer(rebasing: rest.prefix(Int(length))))
            else { return nil }
            elements.append(element)
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(Int(length)))
        }
        return rest.isEmpty ? elements : nil
    }
}
