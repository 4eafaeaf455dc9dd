import Foundation
import Wire

/// Turns values into states and back.
package enum StateCoder {
    /// The bytes of a value: keys sorted, no white space.
    package static func encode<Game: Persistable>(_ game: Game) throws(StoreError) -> [UInt8] {
        let (bytes, isProven): ([UInt8], Bool)
        do {
            (bytes, isProven) = try StateWriting.provenState(of: game.persistedObject())
        } catch {
            throw notEncodable(game, error)
        }
        // What a server could not take is refused here, where the app can still do something about it.
        do throws(JSONCheck.Failure) {
            if !isProven { try JSONCheck.check(bytes.span) }
        } catch {
            throw StoreError(
                .notEncodable, "\(Game.self) \(game.id) cannot be stored: \(error.reason.message)", place: place(game))
        }
        guard bytes.first == UInt8(ascii: "{") else {
            throw StoreError(
                .notEncodable, "\(Game.self) \(game.id) cannot be stored: it encodes to no object", place: place(game))
        }
        return bytes
    }

    /// A value from its state.
    package static func decode<Game: Persistable>(_ type: Game.Type, id: String, _ state: [UInt8]) throws(StoreError)
        -> Game
    {
        do throws(StoreError) {
            _ = try RawJSON(checking: state)
        } catch {
            throw StoreError(
                .invalidState, "\(Game.self) of \(Game.collection) \(id) cannot be read: \(error.message)",
                hint: "The state is kept as it is.",
                place: StoreError.Place(collection: Game.collection, id: id, type: "\(Game.self)", property: ""))
        }
        do {
            return try Game(persistedObject: decode(value: Game.PersistedObject.self, state))
        } catch {
            throw DecodingTrouble(type: Game.self, id: id, state: state).error(error)
        }
    }

    /// A value from a state whose id is not known beside it.
    package static func value<Game: Persistable>(of state: [UInt8]) throws(StoreError) -> Game {
        let id = (try? RawJSON(checking: state))?["id"]?.string
        return try decode(Game.self, id: id ?? "without an id", state)
    }

    /// The state of a value.
    package static func state<Game: Persistable>(of game: Game) throws(StoreError) -> [UInt8] { try encode(game) }

    /// What is left of a state when it is decoded and encoded again; the value's own bytes.
    static func known<Game: Persistable>(_ type: Game.Type, id: String, _ state: [UInt8]) throws(StoreError) -> [UInt8]
    {
        try encode(decode(type, id: id, state))
    }

    /// Decodes any value; a missing key takes its default.
    package static func decode<Value: Decodable>(value type: Value.Type, _ bytes: [UInt8]) throws -> Value {
        do {
            return try StateReading.value(Value.self, of: bytes)
        } catch DecodingError.keyNotFound {
            guard let key = FillingContext.key else { return try StateReading.value(Value.self, of: bytes) }
            return try StateReading.value(FilledValue<Value>.self, of: bytes, userInfo: [key: FillingContext()]).value
        }
    }

    /// Encodes any value.
    package static func encode(value: some Encodable) throws -> [UInt8] { try StateWriting.state(of: value) }

    private static func place<Game: Persistable>(_ game: Game) -> StoreError.Place {
        StoreError.Place(collection: Game.collection, id: game.id, type: "\(Game.self)", property: "")
    }

    private static func notEncodable<Game: Persistable>(_ game: Game, _ error: any Error) -> StoreError {
        var place = place(game)
        let reason: String
        if case EncodingError.invalidValue(let value, let context) = error {
            place.property = context.codingPath.propertyPath
            place.askedType = "\(Swift.type(of: value))"
            // Never the value itself: Foundation's text of a `Date` traps on NaN.
            reason = context.debugDescription
        } else {
            reason = "\(error)"
        }
        let property = place.property.isEmpty ? "" : ".\(place.property)"
        return StoreError(
            .notEncodable, "\(Game.self)\(property) of \(game.id) cannot be stored: \(reason)", place: place)
    }
}

extension [any CodingKey] {
    /// The path as one would write it in Swift: `answerBoard[0][3].letter`.
    var propertyPath: String {
        var path = ""
        for key in self {
            if let index = key.intValue {
                path += "[\(index)]"
            } else {
                path += path.isEmpty ? key.stringValue : ".\(key.stringValue)"
            }
        }
        return path
    }
}
