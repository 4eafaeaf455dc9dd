/// What every line must be before anything else is looked at: UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing
/// above U+10FFFF) without control characters below U+0020 other than the tab.
enum LineCheck {
    /// The first offence in a line.
    enum Failure: Error, Equatable {
        /// The sequence that begins here is not UTF-8.
        case invalidUTF8(offset: Int)
        /// This byte is a control character.
        case controlCharacter(offset: Int)
    }

    /// Throws the first offence.
    static func check(_ line: Span<UInt8>) throws(Failure) {
        let count = line.count
        let raw = line.bytes
        var index = 0
        while index < count {
            // Eight bytes at a time, as long as all are ASCII from the space on; from others on to the first that is not.
            if index <= count - 8 {
                let word = UInt64(littleEndian: raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
                let others = (word & 0x8080_8080_8080_8080) | word.bytes(below: 0x20)
                guard others != 0 else {
                    index += 8
                    continue
                }
                index += others.trailingZeroBitCount / 8
            }
            let byte = line[index]
            if byte < 0x80 {
                guard byte >= 0x20 || byte == 0x09 else { throw .controlCharacter(offset: index) }
                index += 1
            } else {
                guard let length = sequenceLength(line, at: index) else { throw .invalidUTF8(offset: index) }
                index += length
            }
        }
    }

    /// The length of the well-formed sequence of two to four bytes at `index` (Unicode table 3-7); `nil` if there is none.
    @inline(__always)
    private static func sequenceLength(_ line: Span<UInt8>, at index: Int) -> Int? {
        let count = line.count
        let lead = line[index]
        switch lead {
        case 0xC2...0xDF:
            guard index + 1 < count, line[index + 1].isContinuation else { return nil }
            return 2
        case 0xE0...0xEF:
            guard index + 2 < count, line[index + 2].isContinuation else { return nil }
            let second = line[index + 1]
            let isAllowed =
                switch lead {
                case 0xE0: (0xA0...0xBF).contains(second)
                case 0xED: (0x80...0x9F).contains(second)
                default: second.isContinuation
                }
            return isAllowed ? 3 : nil
        case 0xF0...0xF4:
            guard index + 3 < count, line[index + 2].isContinuation, line[index + 3].isContinuation else { return nil }
            let second = line[index + 1]
            let isAllowed =
                switch lead {
                case 0xF0: (0x90...0xBF).contains(second)
                case 0xF4: (0x80...0x8F).contains(second)
                default: second.isContinuation
                }
            return isAllowed ? 4 : nil
        default: return nil
        }
    }
}

extension UInt8 {
    /// Whether this is a byte of a UTF-8 sequence after its first.
    @inline(__always)
    fileprivate var isContinuation: Bool { self & 0xC0 == 0x80 }
}
