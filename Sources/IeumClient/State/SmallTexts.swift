/// A value of a few bytes without references, by its type and its bits: an enum without a payload, a struct of two of them.
///
/// Two with the same bits are the same value, and write the same text, in one encoding.
struct SmallValue: Hashable {
    private let type: ObjectIdentifier
    private let bits: UInt64

    /// nil: the value is larger, or refers to something.
    @inline(__always)
    init?<Value>(_ value: Value) {
        guard MemoryLayout<Value>.size <= MemoryLayout<UInt64>.size, _isPOD(Value.self) else { return nil }
        type = ObjectIdentifier(Value.self)
        bits = withUnsafeBytes(of: value) { source in
            var bits: UInt64 = 0
            withUnsafeMutableBytes(of: &bits) { $0.copyMemory(from: source) }
            return bits
        }
    }
}

/// The texts of small values that one encoding has met: a board of cells is some values many times.
struct SmallTexts {
    private static let maxCount = 256
    private var ranges: [SmallValue: Range<Int>] = [:]
    private(set) var bytes: [UInt8] = []

    func text(of value: SmallValue) -> Range<Int>? { ranges[value] }

    mutating func remember(_ value: SmallValue, _ text: ArraySlice<UInt8>) {
        guard ranges.count < Self.maxCount else { return }
        let start = bytes.count
        bytes.append(contentsOf: text)
        ranges[value] = start..<bytes.count
    }
}
