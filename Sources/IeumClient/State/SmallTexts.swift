/// A value of a few bytes without references, by its type and its bits: an enum without a payload, a struct of two of them.
///
/// Two with the same bits are the same value.
struct SmallValue: Equatable {
    fileprivate let type: ObjectIdentifier
    fileprivate let bits: UInt64

    /// Whether values of a type are small.
    @inline(__always)
    static func holds<Value>(_ type: Value.Type) -> Bool {
        MemoryLayout<Value>.size <= MemoryLayout<UInt64>.size && _isPOD(type)
    }

    /// nil: the value is larger, or refers to something.
    @inline(__always)
    init?<Value>(_ value: Value) {
        guard Self.holds(Value.self) else { return nil }
        self = withUnsafeBytes(of: value) { SmallValue(type: ObjectIdentifier(Value.self), $0) }
    }

    /// The value of these bytes, of which there are at most eight.
    @inline(__always)
    fileprivate init(type: ObjectIdentifier, _ source: UnsafeRawBufferPointer) {
        self.type = type
        var bits: UInt64 = 0
        withUnsafeMutableBytes(of: &bits) { $0.copyMemory(from: source) }
        self.bits = bits
    }

    /// Spread over all bits by two odd multipliers. Nobody gains by values that collide: a search is of a few places.
    fileprivate var hash: UInt {
        let mixed = bits &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(UInt(bitPattern: type)) &* 0xC2B2_AE3D_27D4_EB4F
        return UInt(truncatingIfNeeded: mixed ^ (mixed >> 29))
    }
}

/// The texts of small values that this process has encoded: a board of cells is some values many times, in save after save.
///
/// What a type writes depends on its value alone; one that breaks this rule, by a global setting say, is found out: in each
/// encoding the first value of a type is encoded in any case, and all texts are forgotten where it says something else.
struct SmallTexts {
    private typealias Place = (value: SmallValue?, start: Int32, count: Int16, levels: Int16)

    /// Where a text stands, and how many values are in one another in it.
    typealias Known = (range: Range<Int>, levels: Int)

    /// A power of two.
    private static let size = 128
    /// How far from its own place a value may stand.
    private static let reach = 8
    private static let maxBytes = 32_768
    private var places: [Place] = []
    private(set) var bytes: [UInt8] = []
    /// The types that were met in this encoding.
    private var provenTypes: [ObjectIdentifier] = []

    /// From now on each type is to be proven anew.
    mutating func endEncoding() {
        provenTypes.removeAll(keepingCapacity: true)
    }

    /// The text of a value whose type was met in this encoding.
    func text(of value: SmallValue) -> Known? {
        isProven(value.type) ? find(value) : nil
    }

    /// Whether a type was met in this encoding.
    func isProven(_ type: ObjectIdentifier) -> Bool { provenTypes.contains(type) }

    /// Appends the texts of an array's elements, with commas between them, as long as they are known.
    /// - Parameters:
    ///   - type: the elements' type, whose values are small.
    ///   - elements: the array's memory.
    ///   - first: where to begin.
    ///   - count: how many elements there are.
    /// - Returns: the first element that was not appended, and the most levels of those that were.
    func append<Element>(
        _ type: Element.Type, _ elements: UnsafeRawBufferPointer, from first: Int, count: Int, to text: inout [UInt8]
    ) -> (next: Int, levels: Int) {
        let type = ObjectIdentifier(type)
        let (size, stride) = (MemoryLayout<Element>.size, MemoryLayout<Element>.stride)
        return bytes.withUnsafeBufferPointer { bytes in
            var levels = 0
            for index in first..<count {
                let value = UnsafeRawBufferPointer(rebasing: elements[index * stride..<index * stride + size])
                guard let known = find(SmallValue(type: type, value)) else {
                    return (index, levels)
                }
                if index > first { text.append(UInt8(ascii: ",")) }
                text.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[known.range]))
                levels = max(levels, known.levels)
            }
            return (count, levels)
        }
    }

    /// Takes note of what a value was just encoded as.
    mutating func learn(_ value: SmallValue, _ text: Range<Int>, of source: [UInt8], levels: Int) {
        if let known = find(value) {
            let isSame = bytes[known.range].elementsEqual(source[text])
            if !isSame { forget() }
            if !provenTypes.contains(value.type) { provenTypes.append(value.type) }
            if isSame { return }
        } else if !provenTypes.contains(value.type) {
            provenTypes.append(value.type)
        }
        remember(value, text, of: source, levels: levels)
    }

    private func find(_ value: SmallValue) -> Known? {
        guard !places.isEmpty else { return nil }
        let first = value.hash
        for step in 0..<UInt(Self.reach) {
            let place = places[Int(truncatingIfNeeded: (first &+ step) % UInt(Self.size))]
            guard let known = place.value else { return nil }
            if known == value {
                let start = Int(place.start)
                return (start..<start + Int(place.count), Int(place.levels))
            }
        }
        return nil
    }

    private mutating func remember(_ value: SmallValue, _ text: Range<Int>, of source: [UInt8], levels: Int) {
        // A small value may write a long text, and a deep one.
        guard text.count <= 1_024, let levels = Int16(exactly: levels) else { return }
        if bytes.count + text.count > Self.maxBytes { forget() }
        if places.isEmpty { places = Array(repeating: (nil, 0, 0, 0), count: Self.size) }
        let first = value.hash
        for step in 0..<UInt(Self.reach) {
            let index = Int(truncatingIfNeeded: (first &+ step) % UInt(Self.size))
            guard places[index].value == nil else { continue }
            let start = bytes.count
            source.withUnsafeBufferPointer { bytes.append(contentsOf: UnsafeBufferPointer(rebasing: $0[text])) }
            places[index] = (
                value, Int32(truncatingIfNeeded: start), Int16(truncatingIfNeeded: text.count), levels
            )
            return
        }
        // Full: what is used now makes room for itself.
        forget()
        remember(value, text, of: source, levels: Int(levels))
    }

    private mutating func forget() {
        places = []
        bytes.removeAll(keepingCapacity: true)
    }
}
