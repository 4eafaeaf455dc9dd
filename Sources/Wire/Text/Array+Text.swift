/// Printing goes into byte arrays: the hot lines (a push's `OK`, a pull's `GAME`) create no `String` on their way.
extension [UInt8] {
    /// Appends fixed text.
    package mutating func append(text: StaticString) {
        text.withUTF8Buffer { append(contentsOf: $0) }
    }

    /// Appends text as it is. The caller knows that it holds no line break.
    package mutating func append(text: String) {
        append(contentsOf: text.utf8)
    }

    /// Appends a decimal number.
    package mutating func append(decimal value: some FixedWidthInteger) {
        if value < 0 { append(UInt8(ascii: "-")) }
        var rest = UInt64(value.magnitude)
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var start = digits.count
            repeat {
                start -= 1
                digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            append(contentsOf: digits[start...])
        }
    }

    /// Appends the last `count` decimal digits of a number that is not negative, with leading zeros.
    package mutating func append(_ value: Int64, digits count: Int) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: count) { digits in
            digits.write(value, at: 0, count)
            append(contentsOf: digits)
        }
    }

    /// Appends ` key=number`.
    package mutating func append(option key: StaticString, _ value: some FixedWidthInteger) {
        append(text: key)
        append(decimal: value)
    }

    /// Appends ` key=time`.
    package mutating func append(option key: StaticString, _ value: Timestamp) {
        append(text: key)
        value.print(into: &self)
    }

    /// Appends ` key=uuid`.
    package mutating func append(option key: StaticString, _ value: some UUIDIdentifier) {
        append(text: key)
        value.print(into: &self)
    }

    /// Appends ` key=value`, the value bare where the grammar lets it be, else as a JSON string.
    package mutating func append(option key: StaticString, text value: String) {
        append(text: key)
        append(optionValue: value)
    }

    /// Appends an option's value, bare where the grammar lets it be, else as a JSON string.
    package mutating func append(optionValue value: String) {
        if value.utf8.isEmpty || !value.utf8.allSatisfy(\.isBareValueByte) {
            append(quoted: value)
        } else {
            append(text: value)
        }
    }

    /// Appends text as a JSON string in quotes. Control characters (C1 and the line separators of Unicode too) are
    /// escaped, so that no value can end a line or steer a terminal.
    package mutating func append(quoted text: String) {
        append(UInt8(ascii: "\""))
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x22: append(text: #"\""#)
            case 0x5C: append(text: #"\\"#)
            case 0x0A: append(text: #"\n"#)
            case 0x0D: append(text: #"\r"#)
            case 0x09: append(text: #"\t"#)
            case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029:
                append(text: #"\u"#)
                for shift in [12, 8, 4, 0] { append(hexDigit(UInt8(truncatingIfNeeded: scalar.value >> shift) & 15)) }
            default: append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
        append(UInt8(ascii: "\""))
    }
}

extension UnsafeMutableBufferPointer<UInt8> {
    /// Writes the last `count` decimal digits of a number that is not negative.
    @inline(__always)
    func write(_ value: Int64, at start: Int, _ count: Int) {
        var rest = UInt32(truncatingIfNeeded: value)
        for index in stride(from: start + count - 1, through: start, by: -1) {
            self[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        }
    }
}

/// The lower-case digit of a number below 16.
@inline(__always)
package func hexDigit(_ nibble: UInt8) -> UInt8 {
    nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "a") - 10 + nibble
}

extension UInt8 {
    /// Space or tab: what separates words.
    @inline(__always)
    package var isBlank: Bool { self == 0x20 || self == 0x09 }

    /// `0` to `9`.
    @inline(__always)
    package var isDigit: Bool { self &- UInt8(ascii: "0") < 10 }

    /// `A` to `Z` or `a` to `z`.
    @inline(__always)
    package var isLetter: Bool { (self | 0x20) &- UInt8(ascii: "a") < 26 }

    /// Whether our printers leave this byte bare in an option's value.
    var isBareValueByte: Bool {
        switch self {
        case UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"), UInt8(ascii: "+"), UInt8(ascii: "/"),
            UInt8(ascii: "-"):
            true
        default: isDigit || isLetter
        }
    }
}
