import IeumClient

/// A game is stored as its own `Codable` form says: the state's keys are the names of the properties.
extension Game: Persistable {
    /// The name under which the server keeps games of 한들.
    public static var collection: String { "handle.game" }

    /// What properties hold that a stored state says nothing of, because an older app wrote it. The one place to change when
    /// a property is added is its own default value.
    public static var defaults: Game? { Game(answer: "") }

    /// The state is the game's own JSON object. Said here, because ``persistedObject()`` gives the older, flat form.
    public typealias PersistedObject = Game
}
