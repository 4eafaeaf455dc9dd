extension RawJSON {
    /// Whether both say the same: the order of keys, white space, escapes and the spelling of numbers aside. Numbers are
    /// compared digit by digit, never as `Double`.
    package func isSame(as other: RawJSON) -> Bool {
        if text == other.text { return true }
        guard kind == other.kind else { return false }
        switch kind {
        case .object:
            let (left, right) = (lastMembers, other.lastMembers)
            guard left.count == right.count else { return false }
            return left.allSatisfy { key, value in right[key].map { value.isSame(as: $0) } ?? false }
        case .array:
            guard let left = elements, let right = other.elements, left.count == right.count else { return false }
            return zip(left, right).allSatisfy { $0.isSame(as: $1) }
        case .string: return Self.unescaped(text) == Self.unescaped(other.text)
        case .number: return Decimal(text) == Decimal(other.text)
        case .bool, .null: return text.first == other.text.first
        }
    }

    /// An object's members by key; of a key that stands there twice, the last one.
    var lastMembers: [[UInt8]: RawJSON] {
        Dictionary((members ?? []).map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    }

    /// A number as its digits and the power of ten that the last of them counts.
    private struct Decimal: Equatable {
        var isNegative = false
        var digits: [UInt8] = []
        var exponent = 0

        init(_ text: ArraySlice<UInt8>) {
            var written = 0
            var isWrittenNegative = false
            var part = 0  // 0: integer, 1: fraction, 2: exponent
            for byte in text {
                switch byte {
                case UInt8(ascii: "-") where part == 2: isWrittenNegative = true
                case UInt8(ascii: "-"): isNegative = true
                case UInt8(ascii: "."): part = 1
                case UInt8(ascii: "e"), UInt8(ascii: "E"): part = 2
                case UInt8(ascii: "0")...UInt8(ascii: "9"):
                    if part == 2 {
                        // The check before has bounded exponents; this bound only keeps the sum from overflowing.
                        written = min(written * 10 + Int(byte - UInt8(ascii: "0")), 1 << 40)
                    } else {
                        digits.append(byte)
                        if part == 1 { exponent -= 1 }
                    }
                default: break
                }
            }
            exponent += isWrittenNegative ? -written : written
            while digits.last == UInt8(ascii: "0") {
                digits.removeLast()
                exponent += 1
            }
            digits = Array(digits.drop { $0 == UInt8(ascii: "0") })
            if digits.isEmpty { (isNegative, exponent) = (false, 0) }
        }
    }
}
