/// Crockford's base 32, in which codes are shown: no `I`, `L`, `O`, `U`; read in either case, `O` as `0`, `I` and `L` as `1`.
enum CrockfordBase32 {
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    /// The character for five bits.
    static func character(for bits: some BinaryInteger) -> UInt8 { alphabet[Int(truncatingIfNeeded: bits) & 31] }

    /// The five bits of a character; `nil` for one that is none.
    static func bits(of character: UInt8) -> UInt8? {
        let upper = character.isLetter ? character & ~0x20 : character
        switch upper {
        case UInt8(ascii: "O"): return 0
        case UInt8(ascii: "I"), UInt8(ascii: "L"): return 1
        default: return alphabet.firstIndex(of: upper).map { UInt8($0) }
        }
    }

    /// Reads so many characters, hyphens between them left out; `nil` for anything else.
    static func read<Value: FixedWidthInteger & UnsignedInteger>(_ text: Span<UInt8>, count: Int) -> Value? {
        var bits: Value = 0
        var read = 0
        guard text.count < 2 * count else { return nil }
        for index in text.indices where text[index] != UInt8(ascii: "-") {
            guard read < count, let value = Self.bits(of: text[index]) else { return nil }
            bits = bits << 5 | Value(value)
            read += 1
        }
        return read == count ? bits : nil
    }
}
