import Foundation

/// A type whose values a ``GameStore`` keeps, and a server brings to the player's other devices.
///
/// `Codable`, an `id` and a `timestamp` are all there is to write:
///
/// ```swift
/// struct Game: Persistable {
///     static let collection = "handle.game"
///     var id = UUID().uuidString
///     var timestamp = Date()
///     var answer: String
///     var currentRow = 0
///     static var defaults: Game? { Game(answer: "") }
/// }
/// ```
///
/// How states look, and what becomes of them:
/// - A property that was added takes its value from ``DeclaresDefaults/defaults`` where the stored state has no such key.
/// - Keys that the type does not know, written by a newer app, survive being loaded and saved.
/// - `Date`: ISO 8601, UTC, to the microsecond. `Data`: base64. `Double.nan` and the infinities: the texts `NaN`,
///   `Infinity` and `-Infinity`. Integers are exact, beyond 2^53 too.
/// - What a type encodes depends on its value alone: the text of a small value, such as a cell of a board, may be one that an
///   earlier save of the process has written.
/// - A state that cannot be read is a ``StoreError`` and stays as it is.
///
/// A type that had a second one to be stored in, with ``init(persistedObject:)`` and ``persistedObject()``, keeps both: see
/// ``PersistedRecord``.
public protocol Persistable: Codable, Sendable, Identifiable, DeclaresDefaults where ID == String {
    /// What is stored; the type itself, unless it maps itself by hand.
    associatedtype PersistedObject: Codable & Sendable & DeclaresDefaults = Self

    /// The name of this kind of game, on every device and on the server: 1 to 64 letters, digits, `.`, `_` and `-`,
    /// beginning with a letter.
    static var collection: String { get }

    /// Which game: 1 to 128 bytes of UTF-8, without white space, control characters, `=` and `"`. Stored and sent in Unicode
    /// normal form C: the same id in another form is the same game.
    var id: String { get }

    /// When the game was played, by the app's own account: ``GameStore/latest(_:)`` is the one with the greatest.
    var timestamp: Date { get }

    /// Makes a value from what was stored.
    init(persistedObject: PersistedObject) throws

    /// What is to be stored of the value.
    func persistedObject() throws -> PersistedObject
}

extension Persistable where PersistedObject == Self {
    /// The value itself.
    public init(persistedObject: Self) {
        self = persistedObject
    }

    /// The value itself.
    public func persistedObject() -> Self { self }
}

/// A type that says which value a property has that is missing in what was stored.
///
/// Every ``Persistable`` is one; a nested type may be one, too. A missing key is looked for in the nested type's defaults
/// first, then at its path in the defaults of the types around it.
public protocol DeclaresDefaults {
    /// One instance, for the values of properties that are missing; nil: a missing key is an error.
    static var defaults: Self? { get }
}

extension DeclaresDefaults {
    /// None: a missing key is an error.
    public static var defaults: Self? { nil }
}

/// What a type is stored as that maps itself by hand, as apps did for Realm:
///
/// ```swift
/// struct PersistedGame: PersistedRecord {
///     var id = ""
///     var timestamp = Date()
///     var keyBoard = Data()
///     var didPlayerLose = false        // Game has no such property; what is stored there is kept
///     static var defaults: PersistedGame? { PersistedGame() }
/// }
/// struct Game: Persistable {
///     static let collection = "handle.game"
///     …
///     init(persistedObject: PersistedGame) throws { … }
///     func persistedObject() throws -> PersistedGame { … }
/// }
/// ```
///
/// The type itself need not be able to code all its properties then. What the mapping has no place for, and what the app
/// did not change, stays as it is stored.
public protocol PersistedRecord: Codable, Sendable, DeclaresDefaults {}

extension Persistable where PersistedObject: PersistedRecord {
    /// Decodes the stored form, and maps it.
    public init(from decoder: any Decoder) throws {
        try self.init(persistedObject: PersistedObject(from: decoder))
    }

    /// Maps the value, and encodes the stored form.
    public func encode(to encoder: any Encoder) throws {
        try persistedObject().encode(to: encoder)
    }
}
