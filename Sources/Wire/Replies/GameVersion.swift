/// One version of a game with its state: a `GAME` line, or a `GONE` line for a tombstone.
public struct GameVersion: Hashable, Sendable {
    /// Which game.
    public var game: GameKey
    /// What stands between the key and the state.
    public var header: GameHeader
    /// The JSON text; `nil` is a tombstone.
    public var state: [UInt8]?

    /// Creates a version.
    public init(game: GameKey, header: GameHeader, state: [UInt8]?) {
        self.game = game
        self.header = header
        self.state = state
    }

    /// Appends the line `GAME …` or `GONE …`.
    public func print(into bytes: inout [UInt8]) {
        let collection = Array(game.collection.utf8)
        let id = Array(game.id.utf8)
        if let state {
            header.printGame(collection: collection.span, id: id.span, state: state.span, into: &bytes)
        } else {
            header.printGone(collection: collection.span, id: id.span, into: &bytes)
        }
    }
}

/// What a `GAME` or `GONE` line tells between the game's key and its state.
///
/// The server prints lines from a database's bytes with ``printGame(collection:id:state:into:)`` and
/// ``printGone(collection:id:into:)``, which make no copy on the way.
public struct GameHeader: Hashable, Sendable {
    /// The version's revision.
    public var revision: Revision
    /// When its device saved it.
    public var saved: Timestamp
    /// What the server compares.
    public var stamp: Timestamp
    /// Which device pushed it.
    public var device: DeviceID
    /// The version of its state's shape.
    public var schema: Int32
    /// What became of it when it was pushed.
    public var outcome: Outcome?
    /// The revision that its device had seen.
    public var base: Revision?
    /// The revision that it met.
    public var rival: Revision?

    /// Creates a header.
    public init(
        revision: Revision, saved: Timestamp, stamp: Timestamp, device: DeviceID, schema: Int32,
        outcome: Outcome? = nil, base: Revision? = nil, rival: Revision? = nil
    ) {
        self.revision = revision
        self.saved = saved
        self.stamp = stamp
        self.device = device
        self.schema = schema
        self.outcome = outcome
        self.base = base
        self.rival = rival
    }

    /// Appends the line `GAME collection id … {state}`.
    public func printGame(
        collection: Span<UInt8>, id: Span<UInt8>, state: Span<UInt8>, into bytes: inout [UInt8]
    ) {
        printWords("GAME ", collection, id, into: &bytes)
        bytes.append(state: state)
        bytes.append(UInt8(ascii: "\n"))
    }

    /// Appends the line `GONE collection id …`.
    public func printGone(collection: Span<UInt8>, id: Span<UInt8>, into bytes: inout [UInt8]) {
        printWords("GONE ", collection, id, into: &bytes)
        bytes.append(UInt8(ascii: "\n"))
    }

    private func printWords(
        _ word: StaticString, _ collection: Span<UInt8>, _ id: Span<UInt8>, into bytes: inout [UInt8]
    ) {
        bytes.append(text: word)
        bytes.append(collection: collection, id: id)
        bytes.append(option: " revision=", revision)
        bytes.append(option: " saved=", saved)
        bytes.append(option: " stamp=", stamp)
        bytes.append(option: " device=", device)
        bytes.append(option: " schema=", schema)
        if let outcome {
            bytes.append(text: " outcome=")
            bytes.append(outcome)
        }
        if let base { bytes.append(option: " base=", base) }
        if let rival { bytes.append(option: " rival=", rival) }
    }
}

extension [UInt8] {
    /// Appends the two words of a game's key.
    mutating func append(collection: Span<UInt8>, id: Span<UInt8>) {
        collection.withUnsafeBufferPointer { append(contentsOf: $0) }
        append(UInt8(ascii: " "))
        id.withUnsafeBufferPointer { append(contentsOf: $0) }
    }
}
