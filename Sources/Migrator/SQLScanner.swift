/// Walks over SQL text byte by byte and finds the ends of its statements.
struct SQLScanner {
    private let text: UnsafeBufferPointer<UInt8>
    private var index = 0
    private(set) var parts: [SQLScript.Part] = []
    private(set) var faults: [SQLScript.Fault] = []

    // The part under way.
    private var partStart = 0
    private var firstToken: Int?
    private var lastTokenEnd = 0
    private var words: [String] = []
    private var parenDepth = 0
    private var body = Body()
    private var clientCopy: SQLStatement.ClientCopy?
    /// The word before, in upper case; a dot counts as one.
    private var previousWord = ""

    /// How deep the scanner is in a function's `BEGIN ATOMIC … END`; a CASE in it has an END too.
    private struct Body {
        var depth = 0
        var sawBegin = false
    }

    /// `text` must outlive the scanner.
    init(_ text: UnsafeBufferPointer<UInt8>) {
        self.text = text
    }

    /// Scans all of the text.
    mutating func scan() {
        // A byte order mark is no token.
        if peek(0) == 0xEF, peek(1) == 0xBB, peek(2) == 0xBF { index = 3 }
        while index < text.count { step() }
        if partStart < text.count {
            index = text.count
            endPart()
        }
    }

    // MARK: - One token

    private mutating func step() {
        let start = index
        switch text[index] {
        case UInt8(ascii: " "), 0x09...0x0D:
            index += 1
        case UInt8(ascii: "-") where peek(1) == UInt8(ascii: "-"):
            lineComment()
        case UInt8(ascii: "/") where peek(1) == UInt8(ascii: "*"):
            blockComment()
        case UInt8(ascii: "'"):
            string(from: start, escapes: false)
        case UInt8(ascii: "\""):
            quotedName(from: start)
        case UInt8(ascii: "$"):
            dollar()
        case UInt8(ascii: "\\"):
            metaCommand()
        case UInt8(ascii: "0")...UInt8(ascii: "9"):
            number()
        case let byte where Self.startsName(byte):
            name()
        case UInt8(ascii: "("):
            parenDepth += 1
            symbol()
        case UInt8(ascii: ")"):
            parenDepth = max(parenDepth - 1, 0)
            symbol()
        case UInt8(ascii: ";") where parenDepth == 0 && body.depth == 0:
            index += 1
            endPart()
            if parts.last?.statement?.clientCopy == .fromClient { skipCopyData() }
        default:
            symbol()
        }
    }

    private func peek(_ distance: Int) -> UInt8? {
        index + distance < text.count ? text[index + distance] : nil
    }

    /// Takes the bytes since `start` as a token. A `word` of nil stands for the bytes themselves.
    private mutating func token(from start: Int, word: String? = nil) {
        if firstToken == nil { firstToken = start }
        lastTokenEnd = index
        guard words.count < SQLStatement.maxWords else { return }
        words.append(word ?? String(decoding: text[start..<index], as: UTF8.self))
    }

    private mutating func symbol() {
        let start = index
        index += 1
        previousWord = text[start] == UInt8(ascii: ".") ? "." : ""
        token(from: start)
    }

    private mutating func lineComment() {
        let start = index
        while index < text.count, text[index] != UInt8(ascii: "\n"), text[index] != UInt8(ascii: "\r") { index += 1 }
        if start > 0, MigrationFile.directive(comment: text[start..<index]) != nil {
            faults.append(
                SQLScript.Fault(
                    offset: start, message: "a directive must be the first line of the file",
                    hint: "Move it to the top."))
        }
        if let tool = MigrationFile.otherTool(comment: text[start..<index]) {
            faults.append(
                SQLScript.Fault(
                    offset: start, message: "a file for \(tool): its way down would be run as well",
                    hint: "Keep what goes up and remove the rest. There are no down migrations."))
        }
    }

    private mutating func blockComment() {
        let start = index
        var depth = 0
        while index < text.count {
            if text[index] == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "*") {
                depth += 1
                index += 2
            } else if text[index] == UInt8(ascii: "*"), peek(1) == UInt8(ascii: "/") {
                depth -= 1
                index += 2
                if depth == 0 { return }
            } else {
                index += 1
            }
        }
        unterminated("comment", from: start)
    }

    private mutating func number() {
        let start = index
        while let byte = peek(0), Self.isDigit(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_") {
            index += 1
        }
        // An exponent belongs to the number: the E of 1E'x' opens no escape string.
        if let byte = peek(0), byte | 0x20 == UInt8(ascii: "e") { index += 1 }
        previousWord = ""
        token(from: start)
    }

    private mutating func unterminated(_ what: String, from start: Int) {
        index = text.count
        faults.append(SQLScript.Fault(offset: start, message: "this \(what) has no end"))
    }

    private mutating func metaCommand() {
        let start = index
        while index < text.count, text[index] != UInt8(ascii: "\n"), text[index] != UInt8(ascii: "\r") { index += 1 }
        let command = String(decoding: text[start..<index].prefix { $0 > 0x20 }.prefix(40), as: UTF8.self)
        faults.append(
            SQLScript.Fault(
                offset: start, message: "\(command) is a command of psql, not SQL",
                hint: "Remove the line; only SQL can be sent to the server."))
    }

    // MARK: - Quotes

    private mutating func string(from start: Int, escapes: Bool) {
        while true {
            index += 1  // the opening quote
            var closed = false
            while index < text.count, !closed {
                switch text[index] {
                case UInt8(ascii: "\\") where escapes:
                    index = min(index + 2, text.count)
                case UInt8(ascii: "'") where peek(1) == UInt8(ascii: "'"):
                    index += 2
                case UInt8(ascii: "'"):
                    index += 1
                    closed = true
                default:
                    index += 1
                }
            }
            guard closed else {
                unterminated("string", from: start)
                break
            }
            guard let next = continuation() else { break }
            index = next
        }
        previousWord = ""
        token(from: start, word: "'")
    }

    /// Where a string goes on after space and comments with a line end in them, as the SQL standard has it; nil where it does not.
    private func continuation() -> Int? {
        var (position, sawLineEnd) = (index, false)
        while position < text.count {
            switch text[position] {
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                sawLineEnd = true
                position += 1
            case UInt8(ascii: " "), 0x09, 0x0B, 0x0C:
                position += 1
            case UInt8(ascii: "-")
            where position + 1 < text.count && text[position + 1] == UInt8(ascii: "-"):
                while position < text.count, text[position] != UInt8(ascii: "\n"), text[position] != UInt8(ascii: "\r")
                {
                    position += 1
                }
            case UInt8(ascii: "'") where sawLineEnd:
                return position
            default:
                return nil
            }
        }
        return nil
    }

    private mutating func quotedName(from start: Int) {
        index += 1
        while index < text.count {
            if text[index] == UInt8(ascii: "\"") {
                if peek(1) != UInt8(ascii: "\"") {
                    index += 1
                    previousWord = ""
                    token(from: start)
                    return
                }
                index += 1
            }
            index += 1
        }
        unterminated("quoted name", from: start)
        token(from: start, word: "\"")
    }

    /// A dollar-quoted string, a parameter like `$1`, or a lone sign.
    private mutating func dollar() {
        let start = index
        var end = index + 1
        if end < text.count, Self.startsName(text[end]) {
            while end < text.count, Self.continuesName(text[end]), text[end] != UInt8(ascii: "$") { end += 1 }
        }
        guard end < text.count, text[end] == UInt8(ascii: "$") else {
            index += 1
            while let byte = peek(0), Self.isDigit(byte) { index += 1 }
            previousWord = ""
            return token(from: start, word: "$")
        }
        let tag = text[start...end]
        index = end + 1
        while index < text.count {
            if text[index] == UInt8(ascii: "$"), text[index...].starts(with: tag) {
                index += tag.count
                previousWord = ""
                return token(from: start, word: "'")
            }
            index += 1
        }
        unterminated("dollar-quoted string", from: start)
        token(from: start, word: "'")
    }

    // MARK: - Names and key words

    private static func startsName(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) || byte == UInt8(ascii: "_") || byte >= 0x80
    }

    private static func continuesName(_ byte: UInt8) -> Bool {
        startsName(byte) || isDigit(byte) || byte == UInt8(ascii: "$")
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private mutating func name() {
        let start = index
        // Prefixes that belong to the quote behind them: E'', U&'', U&"". B'', X'' and N'' are cut as plain strings are.
        switch (text[start] | 0x20, peek(1), peek(2)) {
        case (UInt8(ascii: "e"), UInt8(ascii: "'")?, _):
            index += 1
            return string(from: start, escapes: true)
        case (UInt8(ascii: "u"), UInt8(ascii: "&")?, UInt8(ascii: "'")?):
            index += 2
            return string(from: start, escapes: false)
        case (UInt8(ascii: "u"), UInt8(ascii: "&")?, UInt8(ascii: "\"")?):
            index += 2
            return quotedName(from: start)
        default:
            break
        }
        while let byte = peek(0), Self.continuesName(byte) { index += 1 }
        // Past its first words only few statements need theirs read.
        guard words.count < SQLStatement.maxWords || createsRoutine || words.first == "COPY" else {
            return token(from: start)
        }
        let word = String(decoding: text[start..<index], as: UTF8.self).uppercased()
        token(from: start, word: word)
        followBody(word)
        followCopy(word)
        previousWord = word
    }

    private mutating func followBody(_ word: String) {
        guard parenDepth == 0, createsRoutine else { return }
        let isLabel = previousWord == "AS" || previousWord == "."
        if body.depth == 0 {
            if word == "ATOMIC", body.sawBegin { body.depth = 1 }
        } else if word == "CASE", !isLabel {
            body.depth += 1
        } else if word == "END", !isLabel {
            body.depth -= 1
        }
        body.sawBegin = word == "BEGIN"
    }

    private var createsRoutine: Bool {
        guard words.first == "CREATE" else { return false }
        let kind = words.dropFirst(words.dropFirst().starts(with: ["OR", "REPLACE"]) ? 3 : 1).first
        return kind == "FUNCTION" || kind == "PROCEDURE"
    }

    private mutating func followCopy(_ word: String) {
        guard parenDepth == 0, words.first == "COPY", word == "STDIN" || word == "STDOUT" else { return }
        // The server takes either word in either direction.
        if previousWord == "FROM" { clientCopy = .fromClient }
        if previousWord == "TO" { clientCopy = .toClient }
    }

    /// Goes over the lines of data behind a COPY, up to the line `\.` that ends them.
    private mutating func skipCopyData() {
        func lineEnd(_ start: Int) -> Int {
            text[start...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? text.count
        }
        // What stands behind the semicolon in its line is no data.
        guard text[index..<lineEnd(index)].allSatisfy({ $0 <= 0x20 }) else { return }
        index = lineEnd(index)
        while index < text.count {
            let start = index
            index = lineEnd(start)
            if text[start..<index].starts(with: Array("\\.".utf8)),
                text[start..<index].dropFirst(2).allSatisfy({ $0 <= 0x20 })
            {
                break
            }
        }
        if index > partStart { endPart() }
    }

    // MARK: - Parts

    private mutating func endPart() {
        var statement: SQLStatement?
        if let firstToken {
            // The semicolon, or the end of the text where it is missing.
            let ended = index > lastTokenEnd && text[index - 1] == UInt8(ascii: ";")
            statement = SQLStatement(
                range: firstToken..<(ended ? index : lastTokenEnd), words: words, clientCopy: clientCopy)
        }
        parts.append(SQLScript.Part(range: partStart..<index, statement: statement))
        partStart = index
        firstToken = nil
        words = []
        parenDepth = 0
        body = Body()
        previousWord = ""
        clientCopy = nil
    }
}
