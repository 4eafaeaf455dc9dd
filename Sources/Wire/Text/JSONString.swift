/// The characters of a JSON string.
package enum JSONString {
    /// Undoes the escapes of what stands between a string's quotes; `nil` if an escape is unknown or half a surrogate pair,
    /// or `\u0000`, unless that is allowed. The bytes must be valid UTF-8.
    package static func unescape(_ text: Span<UInt8>, allowsNUL: Bool = false) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            guard text[index] == UInt8(ascii: "\\") else {
                bytes.append(text[index])
                index += 1
                continue
            }
            guard index + 1 < text.count else { return nil }
            let letter = text[index + 1]
            index += 2
            switch letter {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): bytes.append(letter)
            case UInt8(ascii: "b"): bytes.append(0x08)
            case UInt8(ascii: "f"): bytes.append(0x0C)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "u"):
                guard let scalar = scalar(text, &index), allowsNUL || scalar != "\0", let encoded = UTF8.encode(scalar)
                else { return nil }
                bytes.append(contentsOf: encoded)
            default: return nil
            }
        }
        return bytes
    }

    /// The scalar whose four hexadecimal digits begin at `index`, of a surrogate pair both halves.
    private static func scalar(_ text: Span<UInt8>, _ index: inout Int) -> Unicode.Scalar? {
        guard let first = unit(text, &index) else { return nil }
        guard (0xD800...0xDBFF).contains(first) else { return Unicode.Scalar(first) }
        guard index + 1 < text.count, text[index] == UInt8(ascii: "\\"), text[index + 1] == UInt8(ascii: "u") else {
            return nil
        }
        index += 2
        guard let second = unit(text, &index), (0xDC00...0xDFFF).contains(second) else { return nil }
        return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    }

    private static func unit(_ text: Span<UInt8>, _ index: inout Int) -> UInt32? {
        guard index + 4 <= text.count else { return nil }
        var unit: UInt32 = 0
        for position in index..<(index + 4) {
            guard let digit = text[position].hexValue else { return nil }
            unit = unit << 4 | UInt32(digit)
        }
        index += 4
        return unit
    }
}
