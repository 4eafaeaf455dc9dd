import Foundation

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
    /// The answer to `PING`, `UNWATCH`, `RENAME`, `REVOKE`, `QUIT` and most parts of an `IMPORT`.
    case done
    /// A version of a game with its state, or a tombstone.
    case game(GameVersion)
    /// A line of a history.
    case version(VersionEntry)
    /// One of the player's devices.
    case device(DeviceEntry)
    /// The answer to `ROTATE`.
    case rotated(TokenOffer)
    /// The answer to `IMPORT BEGIN`.
    case importBegun(UUID)
    /// The answer to `IMPORT END`: the player's last revision.
    case imported(revision: Revision)
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
        case .watching(let revision), .imported(let revision):
            bytes.append(option: "OK revision=", revision)
            bytes.append(UInt8(ascii: "\n"))
        case .time(let time):
            bytes.append(option: "OK time=", time)
            bytes.append(UInt8(ascii: "\n"))
        case .done: bytes.append(text: "OK\n")
        case .game(let version): version.print(into: &bytes)
        case .version(let entry): entry.print(into: &bytes)
        case .device(let entry): entry.print(into: &bytes)
        case .rotated(let offer): offer.print(into: &bytes)
        case .importBegun(let id):
            bytes.append(text: "OK import=")
            id.print(into: &bytes)
            bytes.append(UInt8(ascii: "\n"))
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

/// The last line of several: `END [cursor=…] [more=…] [before=…] [after=…] [revision=…] [purged-before=…]`.
public struct PageEnd: Hashable, Sendable {
    /// Of a pull, and of versions from the oldest on: where the next one goes on.
    public var cursor: Revision?
    /// Of pages: whether there is more now.
    public var more: Bool?
    /// Of a history with more, and of versions from the newest on: where the next page goes on.
    public var before: Revision?
    /// Of devices with more: where the next page goes on.
    public var after: DeviceID?
    /// Of versions: the player's last revision.
    public var lastRevision: Revision?
    /// Of versions, where some were pruned: those below this revision may be gone.
    public var purgedBefore: Revision?

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

    /// Creates the end of devices; `after` says that there is more, and where.
    public init(after: DeviceID?) {
        self.after = after
        more = after != nil
    }

    /// Appends the line.
    public func print(into bytes: inout [UInt8]) {
        bytes.append(text: "END")
        if let cursor { bytes.append(option: " cursor=", cursor) }
        if let more { bytes.append(text: more ? " more=true" : " more=false") }
        if let before { bytes.append(option: " before=", before) }
        if let after { bytes.append(option: " after=", after) }
        if let lastRevision { bytes.append(option: " revision=", lastRevision) }
        if let purgedBefore { bytes.append(option: " purged-before=", purgedBefore) }
        bytes.append(UInt8(ascii: "\n"))
    }
}
