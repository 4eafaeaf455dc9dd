/// One line that the server sends. Source: Documentation/protocol.md, "Replies".
public enum Reply: Hashable, Sendable {
    /// The first line of a connection.
    case greeting(Greeting)
    /// The answer to `HELLO`.
    case hello(Greeting)
    /// The answer to `LOGIN`, `REGISTER` and `LINK`.
    case signIn(SignIn)
    /// The answer to `PAIR`.
    case pairing(PairingOffer)
    /// The answer to `PUSH` and `DELETE`.
    case receipt(PushReceipt)
    /// The answer to `WATCH`.
    case watching(revision: Revision)
    /// The answer to `TIME`.
    case time(Timestamp)
    /// The answer to `PING`, `UNWATCH` and `QUIT`.
    case done
    /// A version of a game with its state, or a tombstone.
    case game(GameVersion)
    /// A line of a history.
    case version(VersionEntry)
    /// A line of help.
    case help(String)
    /// The end of several lines.
    case end(PageEnd)
    /// A command failed.
    case error(WireError)
    /// Not asked for: there is something up to a revision.
    case changed(revision: Revision)
    /// Not asked for: the server closes the connection.
    case bye(WireError)

    /// Appends the line, its line feed included.
    public func print(into bytes: inout [UInt8]) {
        switch self {
        case .greeting(let greeting): greeting.print(into: &bytes)
        case .hello(let greeting): greeting.printAsReply(into: &bytes)
        case .signIn(let signIn): signIn.print(into: &bytes)
        case .pairing(let offer): offer.print(into: &bytes)
        case .receipt(let receipt): receipt.print(into: &bytes)
        case .watching(let revision):
            bytes.append(option: "OK revision=", revision)
            bytes.append(UInt8(ascii: "\n"))
        case .time(let time):
            bytes.append(option: "OK time=", time)
            bytes.append(UInt8(ascii: "\n"))
        case .done: bytes.append(text: "OK\n")
        case .game(let version): version.print(into: &bytes)
        case .version(let entry): entry.print(into: &bytes)
        case .help(let text):
            bytes.append(text: "# ")
            bytes.append(text: text)
            bytes.append(UInt8(ascii: "\n"))
        case .end(let end): end.print(into: &bytes)
        case .error(let error): error.print(into: &bytes)
        case .changed(let revision):
            bytes.append(option: "* CHANGED revision=", revision)
            bytes.append(UInt8(ascii: "\n"))
        case .bye(let reason): reason.printBye(into: &bytes)
        }
    }
}

/// The last line of `PULL`, `GET`, `HISTORY` and `HELP`: `END [cursor=…] [more=…] [before=…]`.
public struct PageEnd: Hashable, Sendable {
    /// Of a pull: where the next one goes on.
    public var cursor: Revision?
    /// Of a pull or a history: whether there is more now.
    public var more: Bool?
    /// Of a history with more: where the next page goes on.
    public var before: Revision?

    /// Creates the end of a get or of help.
    public init() {}

    /// Creates the end of a pull.
    public init(cursor: Revision, more: Bool) {
        self.cursor = cursor
        self.more = more
    }

    /// Creates the end of a history; `before` says that there is more, and where.
    public init(before: Revision?) {
        self.before = before
        more = before != nil
    }

    /// Appends the line.
    public func print(into bytes: inout [UInt8]) {
        bytes.append(text: "END")
        if let cursor { bytes.append(option: " cursor=", cursor) }
        if let more { bytes.append(text: more ? " more=true" : " more=false") }
        if let before { bytes.append(option: " before=", before) }
        bytes.append(UInt8(ascii: "\n"))
    }
}
