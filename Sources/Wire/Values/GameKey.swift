import Foundation

/// The name of one game of a player: its collection and its id inside the collection.
///
/// - `collection`: 1 to 64 bytes, `[A-Za-z][A-Za-z0-9._-]*`; one collection is one kind of game, e.g. `handle.game`.
/// - `id`: 1 to 128 bytes of UTF-8 in Unicode normal form C, without white space, control characters, `=` and `"`.
///
/// A key compares byte by byte, on the server and here: both parts are in normal form.
public struct GameKey: Hashable, Sendable {
    /// The kind of game.
    public let collection: String
    /// Which game of that kind.
    public let id: String

    /// The most bytes a collection's name may have.
    public static let maxCollectionBytes = 64
    /// The most bytes an id may have.
    public static let maxIDBytes = 128

    /// Creates a key; throws `invalid-id` with a hint if one of the parts is not as it must be.
    public init(collection: String, id: String) throws(WireError) {
        var collection = collection
        var id = id
        self = try Self.checked(collection: &collection, id: &id)
    }

    /// Creates a key from bytes that are known to be valid UTF-8.
    init(collection: Span<UInt8>, id: Span<UInt8>) throws(WireError) {
        if let problem = Self.problem(collection: collection) { throw problem }
        if let problem = Self.problem(id: id) { throw problem }
        self.collection = collection.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        self.id = id.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    private static func checked(collection: inout String, id: inout String) throws(WireError) -> GameKey {
        if let problem = collection.withUTF8({ problem(collection: $0.span) }) { throw problem }
        if let problem = id.withUTF8({ problem(id: $0.span) }) { throw problem }
        return GameKey(uncheckedCollection: collection, id: id)
    }

    private init(uncheckedCollection collection: String, id: String) {
        self.collection = collection
        self.id = id
    }

    private static func problem(collection: Span<UInt8>) -> WireError? {
        guard (1...maxCollectionBytes).contains(collection.count) else {
            return .invalidID(field: "collection", "a collection's name has 1 to \(maxCollectionBytes) bytes")
        }
        for index in collection.indices {
            let byte = collection[index]
            let isAllowed = byte.isLetter || (index > 0 && (byte.isDigit || byte.isCollectionMark))
            guard isAllowed else {
                return .invalidID(
                    field: "collection",
                    "a collection's name is a letter, then letters, digits, full stops, underscores and hyphens")
            }
        }
        return nil
    }

    private static func problem(id: Span<UInt8>) -> WireError? {
        guard (1...maxIDBytes).contains(id.count) else {
            return .invalidID(field: "id", "an id has 1 to \(maxIDBytes) bytes")
        }
        var isASCII = true
        for index in id.indices {
            let byte = id[index]
            if byte >= 0x80 {
                isASCII = false
            } else if byte <= 0x20 || byte == 0x7F {
                return .invalidID(field: "id", "an id holds no white space and no control characters")
            } else if byte == UInt8(ascii: "=") || byte == UInt8(ascii: "\"") {
                return .invalidID(field: "id", "an id holds neither = nor \"")
            }
        }
        guard !isASCII else { return nil }
        let text = id.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        for scalar in text.unicodeScalars
        where scalar.properties.isWhitespace || scalar.properties.generalCategory == .control {
            return .invalidID(field: "id", "an id holds no white space and no control characters")
        }
        guard text.precomposedStringWithCanonicalMapping.utf8.elementsEqual(text.utf8) else {
            return .invalidID(
                field: "id", "the id is not in Unicode normal form C",
                hint: "Normalize ids to NFC before they are sent.")
        }
        return nil
    }
}

extension GameKey: CustomStringConvertible {
    /// The two words of the key.
    public var description: String { "\(collection) \(id)" }
}

extension UInt8 {
    fileprivate var isCollectionMark: Bool {
        self == UInt8(ascii: ".") || self == UInt8(ascii: "_") || self == UInt8(ascii: "-")
    }
}
