extension JSONCheck {
    /// What can be wrong with a text.
    public enum Reason: Hashable, Sendable {
        case endsBeforeValue, endsInObject, endsInArray, endsInString, endsInNumber
        case valueExpected, keyExpected, colonExpected, commaOrBraceExpected, commaOrBracketExpected, moreAfterValue
        case controlCharacterInString, invalidEscape, escapedNUL, loneSurrogate
        case malformedNumber, numberOutOfRange
        case tooDeep

        static func ends(in nesting: Nesting) -> Reason {
            nesting.isInObject ? .endsInObject : .endsInArray
        }

        /// What is wrong, in words that follow "the state".
        public var message: String {
            switch self {
            case .endsBeforeValue: "the state is empty"
            case .endsInObject: "the state ends inside an object"
            case .endsInArray: "the state ends inside an array"
            case .endsInString: "the state ends inside a string"
            case .endsInNumber: "the state ends inside a number"
            case .valueExpected: "a JSON value is expected"
            case .keyExpected: "a key in quotes is expected"
            case .colonExpected: "a colon is expected after a key"
            case .commaOrBraceExpected: "a comma or } is expected"
            case .commaOrBracketExpected: "a comma or ] is expected"
            case .moreAfterValue: "more follows after the JSON value"
            case .controlCharacterInString: "a string holds a control character"
            case .invalidEscape: "a string holds an escape that JSON does not have"
            case .escapedNUL: "a string holds \\u0000"
            case .loneSurrogate: "a string holds half a surrogate pair"
            case .malformedNumber: "a number is malformed"
            case .numberOutOfRange: "a number is outside the range of numeric"
            case .tooDeep: "arrays and objects nest more than \(Limits.maxStateDepth) deep"
            }
        }

        var hint: String {
            switch self {
            case .escapedNUL: "PostgreSQL's jsonb cannot hold U+0000: leave it out."
            case .loneSurrogate: "Write characters above U+FFFF as a pair of \\u escapes, or as they are."
            case .numberOutOfRange: "PostgreSQL's jsonb cannot hold the number: write it as a string."
            case .controlCharacterInString: "Write control characters as escapes, e.g. \\n."
            case .tooDeep: "Flatten the state."
            case .moreAfterValue: "Options stand before the state, and the state runs to the end of the line."
            default: "The state is one JSON value (RFC 8259) that runs to the end of the line."
            }
        }
    }

    /// Which arrays and objects are open: one bit each, the innermost apart.
    struct Nesting {
        private(set) var depth = 0
        private(set) var isInObject = false
        private var outer: UInt64 = 0
        private var spilled: [UInt64] = []

        var isEmpty: Bool {
            @inline(__always) get { depth == 0 }
        }

        /// Opens one; `false` if there are too many.
        @inline(__always)
        mutating func enter(object: Bool) -> Bool {
            guard depth < Limits.maxStateDepth else { return false }
            if depth > 0, depth % 64 == 0 { spilled.append(outer) }
            outer = outer << 1 | (isInObject ? 1 : 0)
            isInObject = object
            depth += 1
            return true
        }

        /// Closes the innermost.
        @inline(__always)
        mutating func leave() {
            isInObject = outer & 1 == 1
            outer >>= 1
            depth -= 1
            if depth > 0, depth % 64 == 0 { outer = spilled.popLast() ?? 0 }
        }
    }

    /// What PostgreSQL's `numeric` holds, found by trying PostgreSQL 15: up to 131,072 digits before the decimal point and
    /// 16,383 after it, counted after the exponent is applied (trailing zeros count), and exponents below 2^30 - 1.
    enum NumericRange {
        static let maxIntegerDigits = 131_072
        static let maxFractionDigits = 16_383
        static let exponentBound = 1_073_741_823

        static func contains(_ text: Span<UInt8>, integer: Range<Int>, fraction: Range<Int>, exponent: Int) -> Bool {
            guard abs(exponent) < exponentBound, fraction.count - exponent <= maxFractionDigits else { return false }
            if text[integer.lowerBound] != UInt8(ascii: "0") {
                return integer.count + exponent <= maxIntegerDigits
            }
            // 0.000ddd: the first digit that is not zero decides; a zero may have any exponent.
            for position in fraction where text[position] != UInt8(ascii: "0") {
                return fraction.lowerBound - position + exponent <= maxIntegerDigits
            }
            return true
        }
    }
}

extension WireError {
    /// The state is not JSON, or JSON that PostgreSQL could not query.
    public init(_ failure: JSONCheck.Failure) {
        self.init(
            failure.reason == .tooDeep ? .jsonTooDeep : .invalidJSON, failure.reason.message,
            fields: [Field("offset", String(failure.offset))], hint: failure.reason.hint)
    }
}

extension Span<UInt8> {
    /// Where, from `start`, the first quote, backslash or control character of a JSON string is; `count` if there is none.
    @inline(__always)
    func endOfPlainCharacters(from start: Int) -> Int {
        let raw = bytes
        let end = count
        var index = start
        while index <= end - 8 {
            let word = UInt64(littleEndian: raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
            let mask = word.bytes(below: 0x20) | word.bytes(equalTo: 0x22) | word.bytes(equalTo: 0x5C)
            if mask != 0 { return index + mask.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < end {
            let byte = self[index]
            if byte < 0x20 || byte == 0x22 || byte == 0x5C { return index }
            index += 1
        }
        return end
    }
}

/// Eight bytes looked at in one step: the highest bit of a byte in the result says that the byte below matched. A match
/// may be followed by false ones in higher bytes, so only the lowest is to be trusted, and whether there is any.
extension UInt64 {
    /// Which bytes are below an ASCII value.
    @inline(__always)
    func bytes(below limit: UInt8) -> UInt64 {
        (self &- UInt64(limit) &* 0x0101_0101_0101_0101) & ~self & 0x8080_8080_8080_8080
    }

    /// Which bytes are equal to a value.
    @inline(__always)
    func bytes(equalTo value: UInt8) -> UInt64 {
        let difference = self ^ (UInt64(value) &* 0x0101_0101_0101_0101)
        return (difference &- 0x0101_0101_0101_0101) & ~difference & 0x8080_8080_8080_8080
    }
}
