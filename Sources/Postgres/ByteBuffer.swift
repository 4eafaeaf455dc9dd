/// Growing bytes with integers in network order, the order of everything on PostgreSQL's wire.
struct ByteBuffer: Sendable {
    private var bytes: [UInt8] = []

    var count: Int { bytes.count }

    mutating func append(byte: UInt8) {
        bytes.append(byte)
    }

    mutating func append<Value: FixedWidthInteger>(_ value: Value) {
        Swift.withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func append(_ raw: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: raw)
    }

    mutating func reserveCapacity(_ capacity: Int) {
        bytes.reserveCapacity(capacity)
    }

    /// Empties the buffer and keeps its memory.
    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
    }

    /// Empties the buffer, and frees its memory if that is more than `capacity`.
    mutating func shrink(toCapacity capacity: Int) {
        if bytes.capacity > capacity { bytes = [] } else { removeAll() }
    }

    func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try bytes.withUnsafeBufferPointer { elements throws(Failure) in try body(UnsafeRawBufferPointer(elements)) }
    }
}
