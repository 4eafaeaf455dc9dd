/// One migration: its name, its version and its text.
public struct MigrationFile: Equatable, Sendable {
    /// How a file is run.
    public enum Mode: String, Sendable {
        /// The whole file in one transaction, with its row in the history. The default.
        case transaction
        /// Statement by statement, for what cannot run inside a transaction; resumed where it stopped.
        case noTransaction = "no-transaction"
    }

    /// The file's name, without a folder: `0001_players.sql`.
    public let name: String
    /// The digits that the name begins with.
    public let version: Version
    /// The text in UTF-8, as written but without a byte order mark.
    public let bytes: [UInt8]
    /// What the history remembers of the text.
    public let checksum: Checksum
    /// What the first line asks for.
    public let mode: Mode

    /// The first line that makes a file run outside a transaction.
    public static let noTransactionDirective = "-- migrate: no-transaction"

    /// Reads a file; fails with every problem of its name and its encoding.
    init(name: String, bytes original: [UInt8]) throws(MigrationError) {
        var problems: [Problem] = []
        let digits = name.utf8.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let version = Version(String(decoding: digits, as: UTF8.self))
        if let problem = Self.nameProblem(name, digits: digits.count) { problems.append(problem) }

        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let bytes = original.starts(with: mark) ? Array(original.dropFirst(mark.count)) : original
        let dropped = original.count - bytes.count
        if let offset = bytes.firstIndex(of: 0) {
            problems.append(Self.encodingProblem("a NUL byte", at: offset, dropped: dropped, name: name, bytes: bytes))
        } else if let offset = Self.invalidUTF8(bytes) {
            problems.append(
                Self.encodingProblem("not valid UTF-8", at: offset, dropped: dropped, name: name, bytes: bytes))
        }
        var mode = Mode.transaction
        switch Self.directive(bytes) {
        case nil: break
        case "no-transaction": mode = .noTransaction
        case let unknown?:
            problems.append(
                Problem(
                    "unknown directive \"\(unknown)\"", file: name, location: SourceLocation(of: 0, in: bytes),
                    hint: "The only one is \"\(Self.noTransactionDirective)\"."))
        }
        guard problems.isEmpty, let version else { throw MigrationError(.file, problems) }
        self.name = name
        self.version = version
        self.bytes = bytes
        self.mode = mode
        checksum = Checksum(of: bytes)
    }

    /// The name up to the first underscore, as written: `0001`.
    var writtenVersion: Substring { name.prefix { $0 != "_" } }

    /// The place of a byte of this file.
    func location(ofByte offset: Int) -> SourceLocation {
        SourceLocation(of: offset, in: bytes)
    }
}

// MARK: - Checks

extension MigrationFile {
    private static func nameProblem(_ name: String, digits: Int) -> Problem? {
        let rest = name.utf8.dropFirst(digits).dropLast(".sql".utf8.count)
        let hint = "Name it like 0007_add_scores.sql: digits, an underscore, what it does."
        if digits == 0 {
            return Problem("the name has no version in front", file: name, hint: hint)
        }
        guard rest.first == UInt8(ascii: "_"), rest.count > 1 else {
            return Problem("the version is not followed by an underscore and a name", file: name, hint: hint)
        }
        if name.unicodeScalars.contains(where: { $0.properties.isWhitespace || $0.value < 0x20 || $0.value == 0x7F }) {
            return Problem("the name holds white space or a control character", file: name, hint: hint)
        }
        return nil
    }

    private static func encodingProblem(
        _ what: String, at offset: Int, dropped: Int, name: String, bytes: [UInt8]
    ) -> Problem {
        var location = SourceLocation(of: offset, in: bytes)
        location.text = ""
        return Problem(
            "\(what) (byte \(offset + dropped + 1) of the file)", file: name, location: location,
            hint: "Save the file as UTF-8 text.")
    }

    /// The offset of the first byte that begins no valid UTF-8 sequence; nil when all is valid.
    static func invalidUTF8(_ bytes: [UInt8]) -> Int? {
        if String(validating: bytes, as: UTF8.self) != nil { return nil }
        var index = 0
        while index < bytes.count {
            let length: Int
            switch bytes[index] {
            case 0x00...0x7F: length = 1
            case 0xC2...0xDF: length = 2
            case 0xE0...0xEF: length = 3
            case 0xF0...0xF4: length = 4
            default: return index
            }
            guard
                length == 1
                    || (index + length <= bytes.count
                        && String(validating: bytes[index..<index + length], as: UTF8.self) != nil)
            else { return index }
            index += length
        }
        return nil
    }

    /// What follows `-- migrate:` on the first line.
    private static func directive(_ bytes: [UInt8]) -> String? {
        let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        return directive(comment: line)
    }

    /// The tool for which a comment marks the part that takes a migration back: `-- +goose Down`, `-- +migrate Down`.
    static func otherTool(comment: some Collection<UInt8>) -> String? {
        let words = words(ofComment: comment)
        guard words.count > 1, words[1].lowercased() == "down" else { return nil }
        return ["+goose": "goose", "+migrate": "sql-migrate"][String(words[0])]
    }

    /// What follows `-- migrate:` in a comment, trimmed; nil for any other text.
    static func directive(comment: some Collection<UInt8>) -> String? {
        let words = words(ofComment: comment)
        guard let first = words.first, first.hasPrefix("migrate:") else { return nil }
        let rest = [first.dropFirst("migrate:".count)] + words.dropFirst()
        return rest.filter { !$0.isEmpty }.joined(separator: " ")
    }

    /// The words behind the `--` of a comment.
    private static func words(ofComment comment: some Collection<UInt8>) -> [Substring] {
        let text = String(decoding: comment.prefix(200), as: UTF8.self)
        guard text.hasPrefix("--") else { return [] }
        return text.dropFirst(2).split(whereSeparator: \.isWhitespace)
    }
}
