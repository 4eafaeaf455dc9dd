/// A place in a line, from which words and options are taken. The line itself is passed to each call: the scanner keeps
/// positions only.
struct LineScanner {
    private(set) var position = 0

    /// One `key=value`.
    struct Option {
        /// Where the key is.
        var key: Range<Int>
        /// Where the value is; of a quoted one what stands between the quotes.
        var value: Range<Int>
        /// Whether the value is quoted and holds escapes.
        var hasEscapes: Bool
    }

    /// Skips blanks and says whether anything is left.
    mutating func hasMore(in line: Span<UInt8>) -> Bool {
        while position < line.count, line[position].isBlank { position += 1 }
        return position < line.count
    }

    /// Takes the next word: everything up to a blank or the end.
    mutating func nextWord(in line: Span<UInt8>) -> Range<Int>? {
        guard hasMore(in: line) else { return nil }
        let start = position
        while position < line.count, !line[position].isBlank { position += 1 }
        return start..<position
    }

    /// Takes the next positional word; leaves options and quoted text where they are and returns `nil`.
    mutating func nextPositional(in line: Span<UInt8>) -> Range<Int>? {
        guard hasMore(in: line) else { return nil }
        let start = position
        guard !startsOption(in: line), !line[start].startsState else { return nil }
        return nextWord(in: line)
    }

    /// Takes the next `key=value`; returns `nil`, and stays, where something else begins.
    mutating func nextOption(in line: Span<UInt8>) throws(WireError) -> Option? {
        guard hasMore(in: line), startsOption(in: line) else { return nil }
        let keyStart = position
        while line[position] != UInt8(ascii: "=") { position += 1 }
        let key = keyStart..<position
        position += 1
        guard position < line.count, line[position] == UInt8(ascii: "\"") else {
            let start = position
            while position < line.count, !line[position].isBlank { position += 1 }
            return Option(key: key, value: start..<position, hasEscapes: false)
        }
        position += 1
        let start = position
        var hasEscapes = false
        while position < line.count, line[position] != UInt8(ascii: "\"") {
            if line[position] == UInt8(ascii: "\\") {
                hasEscapes = true
                position += 1
            }
            position += 1
        }
        guard position < line.count else {
            position = line.count
            let name = line.text(key).excerpt
            throw .invalidArgument(
                field: name, "the quoted value of \(name)= does not end",
                hint: "End it with \", and write \\\" for a \" in it.")
        }
        let end = position
        position += 1
        guard position == line.count || line[position].isBlank else {
            let name = line.text(key).excerpt
            throw .invalidArgument(field: name, "a blank is expected after the quoted value of \(name)=")
        }
        return Option(key: key, value: start..<end, hasEscapes: hasEscapes)
    }

    /// Takes the rest of the line.
    mutating func rest(of line: Span<UInt8>) -> Range<Int> {
        defer { position = line.count }
        return position..<line.count
    }

    /// Whether `[a-z][a-z0-9-]*=` stands here. No JSON value begins like that.
    private func startsOption(in line: Span<UInt8>) -> Bool {
        var index = position
        while index < line.count {
            let byte = line[index]
            if byte &- UInt8(ascii: "a") < 26 || (index > position && (byte.isDigit || byte == UInt8(ascii: "-"))) {
                index += 1
            } else {
                return byte == UInt8(ascii: "=") && index > position
            }
        }
        return false
    }
}

extension UInt8 {
    /// Whether a JSON object, array or string begins with this byte: never a positional word.
    fileprivate var startsState: Bool {
        self == UInt8(ascii: "{") || self == UInt8(ascii: "[") || self == UInt8(ascii: "\"")
    }
}

extension Span<UInt8> {
    /// The text of a range that is known to be valid UTF-8.
    func text(_ range: Range<Int>) -> String {
        extracting(range).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    /// A copy of a range.
    func copy(_ range: Range<Int>) -> [UInt8] {
        extracting(range).withUnsafeBufferPointer { [UInt8]($0) }
    }

    /// Up to eight ASCII bytes of a range packed into a number, to switch over; 0 for more than eight.
    func packed(_ range: Range<Int>) -> UInt64 {
        guard range.count <= 8 else { return 0 }
        var value: UInt64 = 0
        for index in range { value = value << 8 | UInt64(self[index]) }
        return value
    }

    /// A decimal number without sign and without leading zeros, at most `Int64.max`.
    func decimal() -> Int64? {
        guard (1...19).contains(count), self[0] != UInt8(ascii: "0") || count == 1 else { return nil }
        var value: Int64 = 0
        for index in indices {
            guard self[index].isDigit else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(Int64(self[index] - UInt8(ascii: "0")))
            guard !overflow, !carry else { return nil }
            value = sum
        }
        return value
    }
}
