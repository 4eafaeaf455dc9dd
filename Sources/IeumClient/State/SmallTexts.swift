/// A value of a few bytes without references, by its type and its bits: an enum without a payload, a struct of two of them.
///
/// Two with the same bits are the same value, and write the same text, in one encoding.
struct SmallValue: Equatable {
    fileprivate let type: ObjectIdentifier
    fileprivate let bits: UInt64

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

    /// Spread over all bits by two odd multipliers. Nobody gains by values that collide: a search is of a few places.
    fileprivate var hash: UInt {
        let mixed = bits &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(UInt(bitPattern: type)) &* 0xC2B2_AE3D_27D4_EB4F
        return UInt(truncatingIfNeeded: mixed ^ (mixed >> 29))
    }
}

/// The texts of small values that one encoding has met: a board of cells is some values many times.
///
/// A table of a fixed size, from which nothing is removed; what finds no place in it is encoded each time.
struct SmallTexts {
    private typealias Place = (value: SmallValue?, start: Int32, end: Int32)

    /// A power of two.
    private static let size = 128
    /// How far from its own place a value may stand.
    private static let reach = 8
    private var places: [Place] = []
    private(set) var bytes: [UInt8] = []

    func text(of value: SmallValue) -> Range<Int>? {
        guard !places.isEmpty else { return nil }
        let first = value.hash
        for step in 0..<UInt(Self.reach) {
            let place = places[Int(truncatingIfNeeded: (first &+ step) % UInt(Self.size))]
            guard let known = place.value else { return nil }
            if known == value { return Int(place.start)..<Int(place.end) }
        }
        return nil
    }

    mutating func remember(_ value: SmallValue, _ text: Range<Int>, of source: [UInt8]) {
        // A small value may write a long text.
        guard text.count <= 1_024, let start = Int32(exactly: bytes.count) else { return }
        if places.isEmpty { places = Array(repeating: (nil, 0, 0), count: Self.size) }
        let first = value.hash
        for step in 0..<UInt(Self.reach) {
            let index = Int(truncatingIfNeeded: (first &+ step) % UInt(Self.size))
            guard places[index].value == nil else { continue }
            source.withUnsafeBufferPointer { bytes.append(contentsOf: UnsafeBufferPointer(rebasing: $0[text])) }
            places[index] = (value, start, start + Int32(text.count))
            return
        }
    }
}
