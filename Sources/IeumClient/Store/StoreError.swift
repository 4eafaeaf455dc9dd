/// Why a store could not do what it was asked for.
///
/// A state that cannot be read stays where it is, on the device and on the server, until somebody can read it or deletes it.
public struct StoreError: Error, Hashable, Sendable {
    /// The kinds of trouble.
    public enum Kind: String, Hashable, Sendable {
        /// A stored value has another type than the property it is for.
        case typeMismatch
        /// A key that the type needs is not stored, and the type declares no default.
        case missingKey
        /// A stored value has the right type, but means nothing to this app, e.g. a case of an enum that a newer app added.
        case unknownValue
        /// A stored state is no JSON object, or not one that a server could keep.
        case invalidState
        /// A value cannot be written as JSON.
        case notEncodable
        /// The state was saved by an app with a newer schema.
        case newerSchema
        /// The file was last used by an app with a newer schema.
        case newerSchemaVersion
        /// A collection's name or an id is not as it must be.
        case invalidID
        /// The schema migration failed; nothing was changed.
        case migrationFailed
        /// The file cannot be opened, e.g. because there is no such folder.
        case cannotOpen
        /// A store was written from inside one of its own transactions, or a transaction was used after its end.
        case misuse
        /// The disk is full; nothing was changed.
        case diskFull
        /// The file, or its folder, cannot be written.
        case readOnly
        /// Another process kept the file longer than the store waits.
        case busy
        /// The file is damaged.
        case damaged
        /// The file is something else's: another program's database, or no database at all.
        case foreign
        /// The file was made by a newer version of this library.
        case newerFormat
        /// SQLite reported something else.
        case sqlite
    }

    /// What SQLite said.
    public struct SQLiteFailure: Hashable, Sendable {
        /// The primary result code, e.g. 13 for `SQLITE_FULL`.
        public var code: Int32
        /// The extended result code.
        public var extendedCode: Int32
        /// The statement or the step that failed.
        public var context: String
    }

    /// Where in a game it happened.
    public struct Place: Hashable, Sendable {
        /// The game's collection.
        public var collection: String
        /// The game's id.
        public var id: String?
        /// The Swift type that was asked for.
        public var type: String
        /// The property, as a path from the type, e.g. `answerBoard[0][3].letter`; empty: the object itself.
        public var property: String
        /// The type of what is stored, as JSON names it.
        public var storedType: String?
        /// The type that was asked for there.
        public var askedType: String?
    }

    /// Which trouble it is.
    public var kind: Kind
    /// What is wrong: one line, factual.
    public var message: String
    /// What to do: a full sentence, where there is something.
    public var hint: String?
    /// Where in a game it happened.
    public var place: Place?
    /// What SQLite said.
    public var sqlite: SQLiteFailure?

    init(
        _ kind: Kind, _ message: String, hint: String? = nil, place: Place? = nil, sqlite: SQLiteFailure? = nil
    ) {
        self.kind = kind
        self.message = message
        self.hint = hint
        self.place = place
        self.sqlite = sqlite
    }
}

extension StoreError: CustomStringConvertible {
    /// The message, and the hint after it.
    public var description: String { hint.map { "\(message). \($0)" } ?? message }
}
