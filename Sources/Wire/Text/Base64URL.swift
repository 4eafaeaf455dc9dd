/// RFC 4648 section 5 without padding. Decoding is strict: trailing bits that no encoder would write are refused, so that
/// one value has one text.
enum Base64URL {
    /// Appends the text of some bytes.
    static func append(_ source: some Sequence<UInt8>, to text: inout [UInt8]) {
        var buffer: UInt32 = 0
        var bits: UInt32 = 0
        for byte in source {
            buffer = (buffer << 8 | UInt32(byte)) & 0xFFFF
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(digit(UInt8(truncatingIfNeeded: buffer >> bits) & 63))
            }
        }
        if bits > 0 {
            text.append(digit(UInt8(truncatingIfNeeded: buffer << (6 - bits)) & 63))
        }
    }

    /// The bytes of a text; `nil` if it is not the text that ``append(_:to:)`` writes for them.
    static func decode(_ text: Span<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 3 / 4)
        var buffer: UInt32 = 0
        var bits: UInt32 = 0
        for index in text.indices {
            guard let value = value(text[index]) else { return nil }
            buffer = (buffer << 6 | UInt32(value)) & 0xFFFF
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: buffer >> bits))
            }
        }
        // Six bits left over are a character too many; the others must be zero.
        guard bits < 6, buffer & ((1 << bits) - 1) == 0 else { return nil }
        return bytes
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        switch value {
        case 0..<26: UInt8(ascii: "A") + value
        case 26..<52: UInt8(ascii: "a") + (value - 26)
        case 52..<62: UInt8(ascii: "0") + (value - 52)
        case 62: UInt8(ascii: "-")
        default: UInt8(ascii: "_")
        }
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
