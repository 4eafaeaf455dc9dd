/// Says whether a text is one JSON value (RFC 8259) that PostgreSQL can also take as `jsonb`.
///
/// One pass, no recursion, and no memory from the heap up to a nesting of 64. Beyond the RFC it refuses what a later
/// `state->>'key'` in psql would fail at: `\u0000`, lone surrogates, and numbers outside the range of `numeric`. The text
/// must be valid UTF-8 (that is checked for the whole line).
public enum JSONCheck {
    /// What is wrong, and where.
    public struct Failure: Error, Hashable, Sendable {
        /// What is wrong.
        public var reason: Reason
        /// The byte of the text at which it is seen; the text's length if the text ends too early.
        public var offset: Int
    }

    /// Throws the first offence.
    public static func check(_ text: Span<UInt8>) throws(Failure) {
        var index = 0
        var nesting = Nesting()
        value: while true {
            skipBlanks(text, &index)
            guard index < text.count else {
                throw Failure(reason: nesting.isEmpty ? .endsBeforeValue : .ends(in: nesting), offset: index)
            }
            switch text[index] {
            case UInt8(ascii: "\""):
                try skipString(text, &index)
            case UInt8(ascii: "{"):
                guard nesting.enter(object: true) else { throw Failure(reason: .tooDeep, offset: index) }
                index += 1
                skipBlanks(text, &index)
                guard index < text.count, text[index] == UInt8(ascii: "}") else {
                    try skipKey(text, &index)
                    continue value
                }
                index += 1
                nesting.leave()
            case UInt8(ascii: "["):
                guard nesting.enter(object: false) else { throw Failure(reason: .tooDeep, offset: index) }
                index += 1
                skipBlanks(text, &index)
                guard index < text.count, text[index] == UInt8(ascii: "]") else { continue value }
                index += 1
                nesting.leave()
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                try skipNumber(text, &index)
            case UInt8(ascii: "t"): try skipLiteral(text, &index, "true")
            case UInt8(ascii: "f"): try skipLiteral(text, &index, "false")
            case UInt8(ascii: "n"): try skipLiteral(text, &index, "null")
            default: throw Failure(reason: .valueExpected, offset: index)
            }
            // After a value: close what ends here, or go on to the next.
            while true {
                skipBlanks(text, &index)
                guard !nesting.isEmpty else {
                    guard index == text.count else { throw Failure(reason: .moreAfterValue, offset: index) }
                    return
                }
                guard index < text.count else { throw Failure(reason: .ends(in: nesting), offset: index) }
                let byte = text[index]
                if byte == UInt8(ascii: ",") {
                    index += 1
                    if nesting.isInObject {
                        skipBlanks(text, &index)
                        try skipKey(text, &index)
                    }
                    continue value
                }
                guard byte == (nesting.isInObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                    let reason = nesting.isInObject ? Reason.commaOrBraceExpected : .commaOrBracketExpected
                    throw Failure(reason: reason, offset: index)
                }
                index += 1
                nesting.leave()
            }
        }
    }

    @inline(__always)
    private static func skipBlanks(_ text: Span<UInt8>, _ index: inout Int) {
        while index < text.count {
            let byte = text[index]
            // Mostly there is none: one comparison says so.
            guard byte <= 0x20, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D else { return }
            index += 1
        }
    }

    /// Skips `"key" :`, from the key's first byte.
    @inline(__always)
    private static func skipKey(_ text: Span<UInt8>, _ index: inout Int) throws(Failure) {
        guard index < text.count else { throw Failure(reason: .endsInObject, offset: index) }
        guard text[index] == UInt8(ascii: "\"") else { throw Failure(reason: .keyExpected, offset: index) }
        try skipString(text, &index)
        skipBlanks(text, &index)
        guard index < text.count else { throw Failure(reason: .endsInObject, offset: index) }
        guard text[index] == UInt8(ascii: ":") else { throw Failure(reason: .colonExpected, offset: index) }
        index += 1
    }

    private static func skipLiteral(
        _ text: Span<UInt8>, _ index: inout Int, _ literal: StaticString
    ) throws(Failure) {
        let start = index
        let length = literal.utf8CodeUnitCount
        let isWhole = literal.withUTF8Buffer { literal in
            guard start + length <= text.count else { return false }
            for position in 0..<length where text[start + position] != literal[position] { return false }
            return true
        }
        guard isWhole else { throw Failure(reason: .valueExpected, offset: start) }
        index += length
    }

    /// Skips a string, from its opening quote.
    @inline(__always)
    private static func skipString(_ text: Span<UInt8>, _ index: inout Int) throws(Failure) {
        index += 1
        while true {
            index = text.endOfPlainCharacters(from: index)
            guard index < text.count else { throw Failure(reason: .endsInString, offset: index) }
            switch text[index] {
            case UInt8(ascii: "\""):
                index += 1
                return
            case UInt8(ascii: "\\"): try skipEscape(text, &index)
            default: throw Failure(reason: .controlCharacterInString, offset: index)
            }
        }
    }

    /// Skips an escape, from its backslash; of a surrogate pair both.
    private static func skipEscape(_ text: Span<UInt8>, _ index: inout Int) throws(Failure) {
        let start = index
        guard start + 1 < text.count else { throw Failure(reason: .endsInString, offset: text.count) }
        switch text[start + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            index += 2
        case UInt8(ascii: "u"):
            let unit = try hexUnit(text, at: start)
            index += 6
            switch unit {
            case 0: throw Failure(reason: .escapedNUL, offset: start)
            case 0xDC00...0xDFFF: throw Failure(reason: .loneSurrogate, offset: start)
            case 0xD800...0xDBFF:
                guard index < text.count else { throw Failure(reason: .endsInString, offset: index) }
                guard text[index] == UInt8(ascii: "\\") else { throw Failure(reason: .loneSurrogate, offset: start) }
                guard index + 1 < text.count else { throw Failure(reason: .endsInString, offset: text.count) }
                guard text[index + 1] == UInt8(ascii: "u") else {
                    throw Failure(reason: .loneSurrogate, offset: start)
                }
                let low = try hexUnit(text, at: index)
                guard (0xDC00...0xDFFF).contains(low) else { throw Failure(reason: .loneSurrogate, offset: start) }
                index += 6
            default: break
            }
        default: throw Failure(reason: .invalidEscape, offset: start)
        }
    }

    /// The value of `\uXXXX` at `start`.
    private static func hexUnit(_ text: Span<UInt8>, at start: Int) throws(Failure) -> UInt16 {
        var unit: UInt16 = 0
        for position in (start + 2)..<(start + 6) {
            guard position < text.count else { throw Failure(reason: .endsInString, offset: text.count) }
            guard let digit = text[position].hexValue else { throw Failure(reason: .invalidEscape, offset: start) }
            unit = unit << 4 | UInt16(digit)
        }
        return unit
    }

    /// Skips a number, from its first byte.
    @inline(__always)
    private static func skipNumber(_ text: Span<UInt8>, _ index: inout Int) throws(Failure) {
        let start = index
        if text[index] == UInt8(ascii: "-") { index += 1 }
        let integer = skipDigits(text, &index)
        guard !integer.isEmpty else { throw Failure(reason: malformed(text, index), offset: index) }
        guard integer.count == 1 || text[integer.lowerBound] != UInt8(ascii: "0") else {
            throw Failure(reason: .malformedNumber, offset: start)
        }
        // Most numbers are short integers.
        let hasMore =
            index < text.count && (text[index] == UInt8(ascii: ".") || text[index] | 0x20 == UInt8(ascii: "e"))
        guard hasMore || integer.count > NumericRange.maxIntegerDigits else { return }
        try skipFraction(text, &index, start: start, integer: integer)
    }

    /// Skips what follows a number's integer part, and checks the number's range.
    private static func skipFraction(
        _ text: Span<UInt8>, _ index: inout Int, start: Int, integer: Range<Int>
    ) throws(Failure) {
        var fraction = index..<index
        if index < text.count, text[index] == UInt8(ascii: ".") {
            index += 1
            fraction = skipDigits(text, &index)
            guard !fraction.isEmpty else { throw Failure(reason: malformed(text, index), offset: index) }
        }
        var exponent = 0
        if index < text.count, text[index] | 0x20 == UInt8(ascii: "e") {
            index += 1
            var isNegative = false
            if index < text.count, text[index] == UInt8(ascii: "+") || text[index] == UInt8(ascii: "-") {
                isNegative = text[index] == UInt8(ascii: "-")
                index += 1
            }
            let digits = skipDigits(text, &index)
            guard !digits.isEmpty else { throw Failure(reason: malformed(text, index), offset: index) }
            for position in digits {
                exponent = min(exponent * 10 + Int(text[position] - UInt8(ascii: "0")), NumericRange.exponentBound)
            }
            if isNegative { exponent = -exponent }
        }
        guard NumericRange.contains(text, integer: integer, fraction: fraction, exponent: exponent) else {
            throw Failure(reason: .numberOutOfRange, offset: start)
        }
    }

    private static func malformed(_ text: Span<UInt8>, _ index: Int) -> Reason {
        index < text.count ? .malformedNumber : .endsInNumber
    }

    @inline(__always)
    private static func skipDigits(_ text: Span<UInt8>, _ index: inout Int) -> Range<Int> {
        let start = index
        while index < text.count, text[index].isDigit { index += 1 }
        return start..<index
    }
}
