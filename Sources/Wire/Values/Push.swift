/// The number of a version in its player's feed: 1, 2, 3 … without gaps; also a place in that feed (a cursor), where 0 is
/// before the first.
public typealias Revision = Int64

/// One version offered to the server.
public struct Push: Hashable, Sendable {
    /// Which game.
    public var game: GameKey
    /// When the device saved it, by the device's clock; `nil` lets the server take its own.
    public var saved: Timestamp?
    /// The revision of this game that the device last saw. 0 says "I believe that it is new"; `nil` claims nothing.
    public var base: Revision?
    /// The version of the state's shape, counted by the app; 0 or more.
    public var schema: Int32
    /// The JSON text, byte for byte; `nil` is a tombstone.
    public var state: [UInt8]?

    /// Creates a push.
    public init(
        game: GameKey, saved: Timestamp? = nil, base: Revision? = nil, schema: Int32 = 0, state: [UInt8]?
    ) {
        self.game = game
        self.saved = saved
        self.base = base
        self.schema = schema
        self.state = state
    }
}

/// What became of a push. Source: Documentation/protocol.md, "Outcomes".
public enum Outcome: String, CaseIterable, Sendable {
    /// The game was new.
    case created
    /// The device had seen the head: the push is the head now.
    case advanced
    /// Written concurrently with the head, and the greater: the push is the head now.
    case won
    /// Written concurrently with the head, and the lesser: stored in the history, the head stays.
    case lost
    /// The same push had come before: nothing new is stored, the first answer is given again.
    case repeated
}

extension Push: CustomStringConvertible {
    /// The push without its state: states stay out of logs.
    public var description: String {
        var text = "Push(\(game)"
        if let saved { text += " saved=\(saved)" }
        if let base { text += " base=\(base)" }
        text += " schema=\(schema)"
        return text + (state.map { " \($0.count) bytes)" } ?? " tombstone)")
    }
}
