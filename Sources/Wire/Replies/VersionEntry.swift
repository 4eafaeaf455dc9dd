/// One version in a `VERSION` line: without its state in a game's history, with it where it was asked for.
public struct VersionEntry: Hashable, Sendable {
    /// Which game.
    public var game: GameKey
    /// What is known about the version.
    public var detail: VersionDetail
    /// The JSON text; `nil` of a tombstone, and where no states were asked for.
    public var state: [UInt8]?

    /// Creates an entry.
    public init(game: GameKey, detail: VersionDetail, state: [UInt8]? = nil) {
        self.game = game
        self.detail = detail
        self.state = state
    }

    /// Appends the line `VERSION …`.
    public func print(into bytes: inout [UInt8]) {
        let collection = Array(game.collection.utf8)
        let id = Array(game.id.utf8)
        detail.print(collection: collection.span, id: id.span, state: state?.span, into: &bytes)
    }
}

/// What a `VERSION` line tells after the game's key.
public struct VersionDetail: Hashable, Sendable {
    /// The version's revision.
    public var revision: Revision
    /// What became of it when it was pushed.
    public var outcome: Outcome
    /// When its device saved it.
    public var saved: Timestamp
    /// What the server compares.
    public var stamp: Timestamp
    /// The server's clock when it arrived.
    public var received: Timestamp
    /// Which device pushed it.
    public var device: DeviceID
    /// The revision that its device had seen.
    public var base: Revision?
    /// The revision that it met.
    public var rival: Revision?
    /// The version of its state's shape.
    public var schema: Int32
    /// The bytes of its state; 0 for a tombstone.
    public var size: Int
    /// Whether it is the game's head.
    public var isHead: Bool
    /// Whether it is a tombstone.
    public var isTombstone: Bool

    /// Creates a detail.
    public init(
        revision: Revision, outcome: Outcome, saved: Timestamp, stamp: Timestamp, received: Timestamp,
        device: DeviceID, base: Revision? = nil, rival: Revision? = nil, schema: Int32, size: Int, isHead: Bool,
        isTombstone: Bool
    ) {
        self.revision = revision
        self.outcome = outcome
        self.saved = saved
        self.stamp = stamp
        self.received = received
        self.device = device
        self.base = base
        self.rival = rival
        self.schema = schema
        self.size = size
        self.isHead = isHead
        self.isTombstone = isTombstone
    }

    /// Appends the line `VERSION collection id … [{state}]`.
    public func print(
        collection: Span<UInt8>, id: Span<UInt8>, state: Span<UInt8>? = nil, into bytes: inout [UInt8]
    ) {
        bytes.append(text: "VERSION ")
        bytes.append(collection: collection, id: id)
        printOrigin(into: &bytes)
        bytes.append(option: " schema=", schema)
        bytes.append(option: " size=", size)
        bytes.append(text: isHead ? " head=true" : " head=false")
        bytes.append(text: isTombstone ? " deleted=true" : " deleted=false")
        if let state { bytes.append(state: state) }
        bytes.append(UInt8(ascii: "\n"))
    }

    /// Appends what became of the version and where it came from.
    func printOrigin(into bytes: inout [UInt8]) {
        bytes.append(option: " revision=", revision)
        bytes.append(text: " outcome=")
        bytes.append(outcome)
        bytes.append(option: " saved=", saved)
        bytes.append(option: " stamp=", stamp)
        bytes.append(option: " received=", received)
        bytes.append(option: " device=", device)
        if let base { bytes.append(option: " base=", base) }
        if let rival { bytes.append(option: " rival=", rival) }
    }
}
