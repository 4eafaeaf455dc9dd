import FoundationEssentials

/// The parameters of one execution, in order and in binary, in one buffer that can be used again.
///
/// Each value must be of the type that the statement declares: PostgreSQL reads the bytes by that type.
public struct ParameterList: Sendable {
    private var bytes = ByteBuffer()
    private var values: [Value] = []

    private struct Value {
        var type: PostgresType
        var offset: Int
        /// Negative for NULL.
        var count: Int
    }

    /// Makes an empty list.
    public init() {}

    /// The number of parameters.
    public var count: Int { values.count }

    /// The size of all values in bytes.
    public var byteCount: Int { bytes.count }

    /// Empties the list; with `keepingCapacity` its memory stays for the next use.
    public mutating func removeAll(keepingCapacity: Bool = true) {
        values.removeAll(keepingCapacity: keepingCapacity)
        bytes.shrink(toCapacity: keepingCapacity ? .max : 0)
    }

    /// Empties the list and gives its memory back if that is more than `capacity` bytes: after one large batch.
    public mutating func removeAll(keepingAtMost capacity: Int) {
        values.removeAll(keepingCapacity: true)
        bytes.shrink(toCapacity: capacity)
    }

    /// Appends NULL of a type.
    public mutating func appendNull(_ type: PostgresType) {
        values.append(Value(type: type, offset: bytes.count, count: -1))
    }

    /// Appends a `bigint`.
    public mutating func append(_ value: Int64) {
        append(.int8) { $0.append(value) }
    }

    /// Appends an `integer`.
    public mutating func append(_ value: Int32) {
        append(.int4) { $0.append(value) }
    }

    /// Appends a `boolean`.
    public mutating func append(_ value: Bool) {
        append(.bool) { $0.append(byte: value ? 1 : 0) }
    }

    /// Appends a `text`, as UTF-8.
    public mutating func append(_ value: String) {
        var value = value
        value.withUTF8 { append(text: UnsafeRawBufferPointer($0)) }
    }

    /// Appends a `text` by its UTF-8 bytes.
    public mutating func append(text: UnsafeRawBufferPointer) {
        append(.text) { $0.append(text) }
    }

    /// Appends a `json` by its UTF-8 bytes, which are kept as they are.
    public mutating func append(json: UnsafeRawBufferPointer) {
        append(.json) { $0.append(json) }
    }

    /// Appends a `json` by its text, which is kept as it is.
    public mutating func append(json: String) {
        var json = json
        json.withUTF8 { append(json: UnsafeRawBufferPointer($0)) }
    }

    /// Appends a `bytea`.
    public mutating func append(_ value: [UInt8]) {
        value.withUnsafeBytes { append(bytes: $0) }
    }

    /// Appends a `bytea`.
    public mutating func append(_ value: Span<UInt8>) {
        value.withUnsafeBytes { append(bytes: $0) }
    }

    /// Appends a `bytea`.
    public mutating func append(bytes value: UnsafeRawBufferPointer) {
        append(.bytea) { $0.append(value) }
    }

    /// Appends a `uuid`.
    public mutating func append(_ value: UUID) {
        var uuid = value.uuid
        withUnsafeBytes(of: &uuid) { raw in append(.uuid) { $0.append(raw) } }
    }

    /// Appends a `timestamptz`, in microseconds since 1970; the extremes of Int64 mean `-infinity` and `infinity`.
    public mutating func append(microsecondsSince1970 value: Int64) {
        append(.timestamptz) { $0.append(PostgresTime.wire(fromUnix: value)) }
    }

    /// Appends a copy of an array, whose builder can be emptied and filled again at once.
    public mutating func append(_ array: BinaryArray) {
        bytes.reserveCapacity(bytes.count + array.byteCount)
        append(array.type) { array.write(to: &$0) }
    }

    private mutating func append(_ type: PostgresType, _ write: (inout ByteBuffer) -> Void) {
        let offset = bytes.count
        write(&bytes)
        values.append(Value(type: type, offset: offset, count: bytes.count - offset))
    }
}

extension ParameterList {
    /// What libpq's functions take: pointers to the values, their lengths and formats, all binary.
    struct CArguments {
        var count: Int32
        var types: UnsafePointer<UInt32>
        var values: UnsafePointer<UnsafePointer<CChar>?>
        var lengths: UnsafePointer<Int32>
        var formats: UnsafePointer<Int32>
    }

    /// Why the wire cannot carry the parameters, if so.
    var problem: DatabaseError? {
        if values.count <= Int(UInt16.max) && values.allSatisfy({ $0.count < 1 << 30 }) { return nil }
        return DatabaseError(.protocol, "the parameters are more than 65535, or one is longer than 1 GiB")
    }

    /// The parameters' types in order.
    var types: [PostgresType] { values.map(\.type) }

    /// Whether the parameters are of these types, one for one.
    func match(_ types: [PostgresType]) -> Bool {
        guard values.count == types.count else { return false }
        for index in values.indices where values[index].type != types[index] { return false }
        return true
    }

    /// Lends the parameters, of which ``problem`` has been looked at, to a C call.
    func withCArguments<Result>(_ body: (CArguments) -> Result) -> Result {
        let count = max(values.count, 1)
        let pointers = UnsafeMutablePointer<UnsafePointer<CChar>?>.allocate(capacity: count)
        let numbers = UnsafeMutablePointer<Int32>.allocate(capacity: 2 * count)
        let types = UnsafeMutablePointer<UInt32>.allocate(capacity: count)
        defer {
            pointers.deallocate()
            numbers.deallocate()
            types.deallocate()
        }
        let (lengths, formats) = (numbers, numbers + count)
        return bytes.withUnsafeBytes { raw in
            // An empty value needs a pointer all the same: libpq takes nil for NULL.
            let base =
                raw.baseAddress?.assumingMemoryBound(to: CChar.self)
                ?? UnsafeRawPointer(numbers).assumingMemoryBound(to: CChar.self)
            for (index, value) in values.enumerated() {
                (pointers + index).initialize(to: value.count < 0 ? nil : base + value.offset)
                (types + index).initialize(to: value.type.rawValue)
                (lengths + index).initialize(to: Int32(clamping: max(value.count, 0)))
                (formats + index).initialize(to: 1)
            }
            return body(
                CArguments(
                    count: Int32(clamping: values.count), types: types, values: pointers, lengths: lengths,
                    formats: formats))
        }
    }
}
