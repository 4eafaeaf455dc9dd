import FoundationEssentials

/// A one-dimensional PostgreSQL array in binary form, built element by element in one buffer that can be used again.
///
/// Appending copies the element's bytes to the end of the buffer and allocates nothing else. An array is sent as a
/// parameter by ``ParameterList/append(_:)-(BinaryArray)``; the statement's parameter must be of the array's type.
/// Source: `array_recv` in PostgreSQL's arrayfuncs.c.
public struct BinaryArray: Sendable {
    /// What an array's elements may be.
    public enum Element: Sendable {
        /// The element's type; the array's own type follows from it.
        case bool, bytea, int4, int8, json, text, timestamptz, uuid
    }

    /// The type of every element.
    public let element: Element
    /// The number of elements, NULLs included.
    public private(set) var count = 0
    private var containsNull = false
    /// Length and bytes of each element, one after the other; what comes before them is written by ``write(to:)``.
    private var elements = ByteBuffer()

    /// Makes an empty array.
    public init(of element: Element) {
        self.element = element
    }

    /// Whether there is no element.
    public var isEmpty: Bool { count == 0 }

    /// The size in bytes as it is sent.
    public var byteCount: Int { Self.headerBytes + (isEmpty ? 0 : Self.dimensionBytes + elements.count) }

    /// Empties the array and keeps its memory for the next use.
    public mutating func removeAll() {
        elements.removeAll()
        count = 0
        containsNull = false
    }

    /// Empties the array and gives its memory back if that is more than `capacity` bytes: after one large batch.
    public mutating func removeAll(keepingAtMost capacity: Int) {
        removeAll()
        elements.shrink(toCapacity: capacity)
    }

    /// Appends NULL.
    public mutating func appendNull() {
        elements.append(Int32(-1))
        containsNull = true
        count += 1
    }

    /// Appends an integer to an `int8` array.
    public mutating func append(_ value: Int64) {
        require(.int8)
        elements.append(Int32(8))
        elements.append(value)
        count += 1
    }

    /// Appends an integer to an `int4` array.
    public mutating func append(_ value: Int32) {
        require(.int4)
        elements.append(Int32(4))
        elements.append(value)
        count += 1
    }

    /// Appends a time, in microseconds since 1970; the extremes of Int64 mean `-infinity` and `infinity`.
    public mutating func append(microsecondsSince1970 value: Int64) {
        require(.timestamptz)
        elements.append(Int32(8))
        elements.append(PostgresTime.wire(fromUnix: value))
        count += 1
    }

    /// Appends a truth value.
    public mutating func append(_ value: Bool) {
        require(.bool)
        elements.append(Int32(1))
        elements.append(byte: value ? 1 : 0)
        count += 1
    }

    /// Appends a UUID.
    public mutating func append(_ value: UUID) {
        require(.uuid)
        var bytes = value.uuid
        withUnsafeBytes(of: &bytes) { append($0) }
    }

    /// Appends a text to a `text` or `json` array, as UTF-8.
    public mutating func append(_ value: String) {
        var value = value
        value.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    /// Appends the bytes of a `bytea`, `text`, `json` or (sixteen of them) `uuid` element.
    public mutating func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { append($0) }
    }

    /// Appends the bytes of a `bytea`, `text`, `json` or (sixteen of them) `uuid` element.
    public mutating func append(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { append($0) }
    }

    /// Appends the bytes of a `bytea`, `text`, `json` or (sixteen of them) `uuid` element.
    public mutating func append(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBytes { append($0) }
    }

    /// Appends the bytes of a `bytea`, `text`, `json` or (sixteen of them) `uuid` element.
    ///
    /// - Precondition: the element's type is one of these, and a UUID has sixteen bytes.
    public mutating func append(_ bytes: UnsafeRawBufferPointer) {
        switch element {
        case .bytea, .text, .json: break
        case .uuid: precondition(bytes.count == 16, "a UUID has sixteen bytes")
        case .bool, .int4, .int8, .timestamptz: wrongElement()
        }
        // PostgreSQL refuses a field of 1 GiB; a longer one than Int32 holds is refused there like any other.
        elements.append(Int32(clamping: bytes.count))
        elements.append(bytes)
        count += 1
    }

    private func require(_ required: Element) {
        if element != required { wrongElement() }
    }

    private func wrongElement() -> Never {
        preconditionFailure("the value does not fit an array of \(element)")
    }
}

extension BinaryArray {
    /// The array's own type.
    public var type: PostgresType {
        switch element {
        case .bool: .boolArray
        case .bytea: .byteaArray
        case .int4: .int4Array
        case .int8: .int8Array
        case .json: .jsonArray
        case .text: .textArray
        case .timestamptz: .timestamptzArray
        case .uuid: .uuidArray
        }
    }

    private var elementType: PostgresType {
        switch element {
        case .bool: .bool
        case .bytea: .bytea
        case .int4: .int4
        case .int8: .int8
        case .json: .json
        case .text: .text
        case .timestamptz: .timestamptz
        case .uuid: .uuid
        }
    }

    /// Number of dimensions, NULL flag and element type; an empty array is just these, with no dimension.
    private static let headerBytes = 12
    /// Number of elements and index of the first.
    private static let dimensionBytes = 8

    /// Writes the array behind what `target` holds.
    func write(to target: inout ByteBuffer) {
        target.append(Int32(isEmpty ? 0 : 1))
        target.append(Int32(containsNull ? 1 : 0))
        target.append(Int32(bitPattern: elementType.rawValue))
        if isEmpty { return }
        target.append(Int32(clamping: count))
        target.append(Int32(1))
        elements.withUnsafeBytes { target.append($0) }
    }
}
