/// Reads one line that a client sent. Source: Documentation/protocol.md, "Grammar".
///
/// Parsing is total: every line is a command, a blank or a coded error. It takes time linear in the line's length, and no
/// memory beyond what the command keeps.
public struct CommandParser: Sendable {
    /// What is checked besides the grammar.
    public let limits: Limits

    /// Creates a parser.
    public init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// The command in a line without its line feed; `nil` for a line of nothing but blanks.
    public func parse(_ line: Span<UInt8>) throws(WireError) -> Command? {
        let hasReturn = line.count > 0 && line[line.count - 1] == UInt8(ascii: "\r")
        let line = line.extracting(0..<(hasReturn ? line.count - 1 : line.count))
        guard line.count <= limits.maxLineBytes else { throw .lineTooLong(limit: limits.maxLineBytes) }
        do throws(LineCheck.Failure) {
            try LineCheck.check(line)
        } catch {
            switch error {
            case .invalidUTF8(let offset): throw .invalidUTF8(offset: offset)
            case .controlCharacter(let offset): throw .invalidCharacter(offset: offset)
            }
        }
        var scanner = LineScanner()
        guard let word = scanner.nextWord(in: line) else { return nil }
        guard let verb = Verb(line, word) else { throw .unknownCommand(line.text(word)) }
        return try command(verb, line, &scanner)
    }

    private func command(
        _ verb: Verb, _ line: Span<UInt8>, _ scanner: inout LineScanner
    ) throws(WireError) -> Command {
        switch verb {
        case .push: return try push(line, &scanner)
        case .delete:
            let game = try gameKey(verb, line, &scanner)
            let options = try lastOptions(verb, line, &scanner, known: [.saved, .base, .schema])
            return .push(Push(game: game, options, state: nil))
        case .pull:
            let options = try lastOptions(verb, line, &scanner, known: [.since, .limit])
            return .pull(since: options.since ?? 0, limit: options.limit)
        case .watch:
            let options = try lastOptions(verb, line, &scanner, known: .since)
            return .watch(since: options.since ?? 0)
        case .get:
            let game = try gameKey(verb, line, &scanner)
            return .get(game, revision: try lastOptions(verb, line, &scanner, known: .revision).revision)
        case .history:
            let game = try gameKey(verb, line, &scanner)
            let options = try lastOptions(verb, line, &scanner, known: [.before, .limit])
            return .history(game, before: options.before, limit: options.limit)
        case .versions:
            let known: CommandOptions.Keys = [.since, .before, .revision, .limit, .conflicts, .states]
            return .versions(try VersionsQuery(try lastOptions(verb, line, &scanner, known: known)))
        case .devices:
            let options = try lastOptions(verb, line, &scanner, known: [.after, .limit])
            return .devices(after: options.after, limit: options.limit)
        case .importing: return .importing(try importPart(line, &scanner))
        case .login:
            let word = try positional(.token, verb, line, &scanner)
            guard let token = Token(utf8: line.extracting(word)) else {
                throw .invalidArgument(
                    field: "token", "this is no token",
                    hint: "A token is the \(Token.textLength) characters that REGISTER or LINK answered.")
            }
            _ = try lastOptions(verb, line, &scanner, known: [])
            return .login(token)
        case .link:
            let word = try positional(.code, verb, line, &scanner)
            guard let code = PairingCode(utf8: line.extracting(word)) else {
                throw .invalidArgument(
                    field: "code", "this is no pairing code", hint: "A code looks like 7K3M-Q9TD; PAIR makes one.")
            }
            return .link(code: code, device: try lastOptions(verb, line, &scanner, known: .device).device)
        case .register:
            let options = try lastOptions(verb, line, &scanner, known: [.device, .invite])
            return .register(device: options.device, invite: options.invite)
        case .rename:
            let device = try scanner.nextPositional(in: line).map { (word) throws(WireError) in
                try deviceID(line.extracting(word))
            }
            guard let name = try lastOptions(verb, line, &scanner, known: .name).name else {
                throw .missingOption("name", of: .rename)
            }
            return .rename(device, name: name)
        case .revoke:
            let device = try deviceID(line.extracting(positional(.device, verb, line, &scanner)))
            _ = try lastOptions(verb, line, &scanner, known: [])
            return .revoke(device)
        case .hello:
            return .hello(client: try lastOptions(verb, line, &scanner, known: .client).client)
        case .help:
            let topic = scanner.nextPositional(in: line).map { line.text($0) }
            _ = try lastOptions(verb, line, &scanner, known: [])
            return .help(topic: topic)
        case .pair, .rotate, .unwatch, .time, .ping, .quit:
            _ = try lastOptions(verb, line, &scanner, known: [])
            switch verb {
            case .pair: return .pair
            case .rotate: return .rotate
            case .unwatch: return .unwatch
            case .time: return .time
            case .quit: return .quit
            default: return .ping
            }
        }
    }

    private func push(_ line: Span<UInt8>, _ scanner: inout LineScanner) throws(WireError) -> Command {
        let game = try gameKey(.push, line, &scanner)
        let options = try CommandOptions(line, &scanner, known: [.saved, .base, .schema])
        guard scanner.hasMore(in: line) else { throw .missingState }
        return .push(Push(game: game, options, state: try state(line, &scanner)))
    }

    private func deviceID(_ word: Span<UInt8>) throws(WireError) -> DeviceID {
        guard let device = DeviceID(utf8: word) else {
            throw .invalidArgument(field: "device", "this is no device's id", hint: "DEVICES lists the devices.")
        }
        return device
    }

    /// Takes the state, which is the rest of the line.
    func state(_ line: Span<UInt8>, _ scanner: inout LineScanner) throws(WireError) -> [UInt8] {
        let range = scanner.rest(of: line)
        guard range.count <= limits.maxStateBytes else { throw .stateTooLarge(limit: limits.maxStateBytes) }
        do throws(JSONCheck.Failure) {
            try JSONCheck.check(line.extracting(range))
        } catch {
            throw WireError(error)
        }
        return line.copy(range)
    }

    func gameKey(
        _ verb: Verb, _ line: Span<UInt8>, _ scanner: inout LineScanner
    ) throws(WireError) -> GameKey {
        let collection = try positional(.collection, verb, line, &scanner)
        let id = try positional(.id, verb, line, &scanner)
        return try GameKey(collection: line.extracting(collection), id: line.extracting(id))
    }

    func positional(
        _ argument: WireError.Argument, _ verb: Verb, _ line: Span<UInt8>, _ scanner: inout LineScanner
    ) throws(WireError) -> Range<Int> {
        guard let word = scanner.nextPositional(in: line) else { throw .missingArgument(argument, of: verb) }
        return word
    }

    /// Takes the options of a command that takes nothing after them.
    func lastOptions(
        _ verb: Verb, _ line: Span<UInt8>, _ scanner: inout LineScanner, known: CommandOptions.Keys
    ) throws(WireError) -> CommandOptions {
        let options = try CommandOptions(line, &scanner, known: known)
        if let word = scanner.nextWord(in: line) { throw .unexpectedArgument(line.text(word), of: verb) }
        return options
    }
}

extension Push {
    fileprivate init(game: GameKey, _ options: CommandOptions, state: [UInt8]?) {
        self.init(
            game: game, saved: options.saved, base: options.base, schema: options.schema ?? 0, state: state)
    }
}

extension Verb {
    private static let byText: [(packed: UInt64, verb: Verb)] = allCases.map { verb in
        (verb.rawValue.utf8.reduce(0) { $0 << 8 | UInt64($1) }, verb)
    }

    /// The verb that stands in a line, in either case.
    fileprivate init?(_ line: Span<UInt8>, _ range: Range<Int>) {
        guard range.count <= 8 else { return nil }
        var packed: UInt64 = 0
        for index in range {
            let byte = line[index]
            packed = packed << 8 | UInt64(byte.isLetter ? byte & ~0x20 : byte)
        }
        for entry in Self.byText where entry.packed == packed {
            self = entry.verb
            return
        }
        return nil
    }
}
