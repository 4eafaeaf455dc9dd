/// What the server bounds on one connection. Source: Documentation/protocol.md, "Limits".
public struct Limits: Hashable, Sendable {
    /// The longest line, in bytes, its line ending not counted.
    public var maxLineBytes: Int
    /// The largest state, in bytes.
    public var maxStateBytes: Int
    /// The most commands of one connection that wait for their answers at a time.
    public var maxPipelinedPushes: Int
    /// How many games or versions a page has when the client does not say.
    public var defaultPageSize: Int
    /// The most games or versions in a page; a greater `limit=` is held down to it.
    public var maxPageSize: Int

    /// The most characters in a device's or a client's name.
    public static let maxNameCharacters = 64
    /// The most bytes in such a name.
    public static let maxNameBytes = 255
    /// The deepest nesting of arrays and objects in a state.
    public static let maxStateDepth = 512

    /// Creates limits; what is left out takes its default.
    public init(
        maxLineBytes: Int = 1_048_576, maxStateBytes: Int = 1_047_552, maxPipelinedPushes: Int = 128,
        defaultPageSize: Int = 100, maxPageSize: Int = 1_000
    ) {
        self.maxLineBytes = maxLineBytes
        self.maxStateBytes = maxStateBytes
        self.maxPipelinedPushes = maxPipelinedPushes
        self.defaultPageSize = defaultPageSize
        self.maxPageSize = maxPageSize
    }
}
