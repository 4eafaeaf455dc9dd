/// One line that a client received, read as totally as the server reads its own: any bytes are a line or a
/// ``MalformedLine``. Options, notices and kinds of line that are not known are no error.
public enum ServerLine: Hashable, Sendable {
    /// The first line of a connection.
    case greeting(Greeting)
    /// A command succeeded. What the fields mean depends on it: `SignIn(fields)`, `PushReceipt(fields)` and so on.
    case ok(ReplyFields)
    /// The end of several lines.
    case end(PageEnd)
    /// A command failed.
    case error(WireError)
    /// `GAME`, or `GONE` (then `state` is `nil`).
    case game(GameVersion)
    /// A line of a history.
    case version(VersionEntry)
    /// One of the player's devices.
    case device(DeviceEntry)
    /// A line of help, without `# `.
    case help(String)
    /// Not asked for: there is something up to a revision.
    case changed(revision: Revision)
    /// Not asked for: the server closes the connection.
    case bye(WireError)
    /// A line or a notice of a kind that this version does not know, with its word: to be passed over.
    case unrecognized(String)

    /// Whether this is the last line of a command's reply.
    public var endsReply: Bool {
        switch self {
        case .ok, .end, .error: true
        case .greeting, .game, .version, .device, .help, .changed, .bye, .unrecognized: false
        }
    }

    /// Reads a line without its line feed; `nil` for a line of nothing but blanks.
    public static func parse(_ line: Span<UInt8>) throws(MalformedLine) -> ServerLine? {
        let hasReturn = line.count > 0 && line[line.count - 1] == UInt8(ascii: "\r")
        let line = line.extracting(0..<(hasReturn ? line.count - 1 : line.count))
        do throws(LineCheck.Failure) {
            try LineCheck.check(line)
        } catch {
            throw MalformedLine("the line is no UTF-8 text: \(error)")
        }
        var scanner = LineScanner()
        guard let range = scanner.nextWord(in: line) else { return nil }
        let word = line.text(range)
        switch word {
        case "OK": return .ok(try ReplyFields(line, &scanner))
        case "GAME", "GONE": return .game(try game(line, &scanner, isTombstone: word == "GONE"))
        case "END": return .end(try PageEnd(try ReplyFields(line, &scanner)))
        case "ERR":
            let code = try Self.word("a code", line, &scanner)
            return .error(try WireError(code: code, try ReplyFields(line, &scanner)))
        case "VERSION":
            let key = try gameKey(line, &scanner)
            let fields = try ReplyFields(line, &scanner)
            return .version(VersionEntry(game: key, detail: try VersionDetail(fields), state: fields.tail))
        case "DEVICE":
            guard let device = DeviceID(try Self.word("a device", line, &scanner)) else {
                throw MalformedLine("the device is no UUID")
            }
            return .device(try DeviceEntry(device: device, try ReplyFields(line, &scanner)))
        case "#":
            return .help(line.text(min(range.upperBound + 1, line.count)..<line.count))
        case "IEUM":
            let version = try Self.word("a version", line, &scanner)
            guard let number = Int(version) else { throw MalformedLine("the protocol's version is no number") }
            return .greeting(try Greeting(protocolVersion: number, try ReplyFields(line, &scanner)))
        case "*": return try notice(line, &scanner)
        default: return .unrecognized(word)
        }
    }

    private static func notice(_ line: Span<UInt8>, _ scanner: inout LineScanner) throws(MalformedLine) -> ServerLine {
        let word = try word("a notice", line, &scanner)
        switch word {
        case "CHANGED":
            return .changed(revision: try ReplyFields(line, &scanner).revision("revision"))
        case "BYE":
            let fields = try ReplyFields(line, &scanner)
            return .bye(try WireError(code: try fields.text("reason"), fields, except: "reason"))
        default: return .unrecognized(word)
        }
    }

    private static func game(
        _ line: Span<UInt8>, _ scanner: inout LineScanner, isTombstone: Bool
    ) throws(MalformedLine) -> GameVersion {
        let key = try gameKey(line, &scanner)
        let fields = try ReplyFields(line, &scanner)
        guard isTombstone == (fields.tail == nil) else {
            throw MalformedLine(isTombstone ? "GONE has a state" : "GAME has no state")
        }
        return GameVersion(game: key, header: try GameHeader(fields), state: fields.tail)
    }

    private static func gameKey(_ line: Span<UInt8>, _ scanner: inout LineScanner) throws(MalformedLine) -> GameKey {
        guard let collection = scanner.nextWord(in: line), let id = scanner.nextWord(in: line) else {
            throw MalformedLine("the game's key is missing")
        }
        do throws(WireError) {
            return try GameKey(collection: line.extracting(collection), id: line.extracting(id))
        } catch {
            throw MalformedLine(error.message)
        }
    }

    private static func word(
        _ what: String, _ line: Span<UInt8>, _ scanner: inout LineScanner
    ) throws(MalformedLine) -> String {
        guard let range = scanner.nextWord(in: line) else { throw MalformedLine("\(what) is missing") }
        return line.text(range)
    }
}
