import Foundation

/// Decodes a value whose stored form lacks keys: each missing key takes its value from the defaults.
///
/// The way of last resort, gone after a plain decoding has met a missing key: a `Decoder` around the real one.
struct FilledValue<Value: Decodable>: Decodable {
    let value: Value

    init(from decoder: any Decoder) throws {
        let context = FillingContext.of(decoder)
        value = try FillingDecoder.decode(Value.self, from: decoder, around: context.take(), context)
    }
}

/// Hands the defaults for a value from its container to its decoder, which only the JSON decoder can make, and which is
/// good for no longer than the value's `init(from:)`.
///
/// `@unchecked Sendable`: belongs to one decoding, which is on one thread.
final class FillingContext: @unchecked Sendable {
    static let key = CodingUserInfoKey(rawValue: "ieum.defaults")
    private var defaults: [RawJSON] = []

    static func of(_ decoder: any Decoder) -> FillingContext {
        key.flatMap { decoder.userInfo[$0] as? FillingContext } ?? FillingContext()
    }

    func give(_ defaults: [RawJSON]) { self.defaults = defaults }

    func take() -> [RawJSON] {
        defer { defaults = [] }
        return defaults
    }
}

/// A decoder that asks defaults for what its base does not have.
private struct FillingDecoder: Decoder {
    let base: any Decoder
    /// The objects that hold defaults for what is decoded here, the nearest first.
    let defaults: [RawJSON]
    let context: FillingContext

    var codingPath: [any CodingKey] { base.codingPath }
    var userInfo: [CodingUserInfoKey: Any] { base.userInfo }

    static func decode<Value: Decodable>(
        _ type: Value.Type, from decoder: any Decoder, around outer: [RawJSON], _ context: FillingContext
    ) throws -> Value {
        // What the JSON decoder has a way of its own for.
        if Value.self == Date.self || Value.self == Data.self || Value.self == URL.self || Value.self == Decimal.self {
            return try decoder.singleValueContainer().decode(Value.self)
        }
        var defaults = outer
        if let own = try (type as? any DeclaresDefaults.Type)?.encodedDefaults() { defaults.insert(own, at: 0) }
        return try Value(from: FillingDecoder(base: decoder, defaults: defaults, context: context))
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Keyed(base: try base.container(keyedBy: type), defaults: defaults, context: context))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        Unkeyed(base: try base.unkeyedContainer(), defaults: defaults, context: context)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        Single(base: try base.singleValueContainer(), decoder: base, defaults: defaults, context: context)
    }

    struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let base: KeyedDecodingContainer<Key>
        let defaults: [RawJSON]
        let context: FillingContext

        var codingPath: [any CodingKey] { base.codingPath }
        var allKeys: [Key] { base.allKeys }

        // Not what the defaults hold: a missing optional is nil, for that is how nil is stored.
        func contains(_ key: Key) -> Bool { base.contains(key) }

        private func inherited(_ key: Key) -> [RawJSON] { defaults.compactMap { $0[key.stringValue] } }

        func decodeNil(forKey key: Key) throws -> Bool { try base.decodeNil(forKey: key) }

        func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
            let inherited = inherited(key)
            guard base.contains(key) else {
                guard let value = inherited.first else { return try base.decode(type, forKey: key) }
                return try StateCoder.decode(value: type, Array(value.text))
            }
            context.give(inherited)
            return try base.decode(FilledValue<Value>.self, forKey: key).value
        }

        func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws
            -> KeyedDecodingContainer<Nested>
        {
            KeyedDecodingContainer(
                FillingDecoder.Keyed<Nested>(
                    base: try base.nestedContainer(keyedBy: type, forKey: key), defaults: inherited(key),
                    context: context))
        }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            Unkeyed(base: try base.nestedUnkeyedContainer(forKey: key), defaults: inherited(key), context: context)
        }

        func superDecoder() throws -> any Decoder {
            FillingDecoder(
                base: try base.superDecoder(), defaults: defaults.compactMap { $0["super"] }, context: context)
        }

        func superDecoder(forKey key: Key) throws -> any Decoder {
            FillingDecoder(base: try base.superDecoder(forKey: key), defaults: inherited(key), context: context)
        }
    }

    struct Unkeyed: UnkeyedDecodingContainer {
        var base: any UnkeyedDecodingContainer
        let defaults: [RawJSON]
        let context: FillingContext

        var codingPath: [any CodingKey] { base.codingPath }
        var count: Int? { base.count }
        var isAtEnd: Bool { base.isAtEnd }
        var currentIndex: Int { base.currentIndex }

        private var inherited: [RawJSON] {
            let index = base.currentIndex
            return defaults.compactMap { $0.elements }.compactMap { $0.indices.contains(index) ? $0[index] : nil }
        }

        mutating func decodeNil() throws -> Bool { try base.decodeNil() }

        mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
            context.give(inherited)
            return try base.decode(FilledValue<Value>.self).value
        }

        mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) throws
            -> KeyedDecodingContainer<Nested>
        {
            let inherited = inherited
            return KeyedDecodingContainer(
                FillingDecoder.Keyed<Nested>(
                    base: try base.nestedContainer(keyedBy: type), defaults: inherited, context: context))
        }

        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
            let inherited = inherited
            return Unkeyed(base: try base.nestedUnkeyedContainer(), defaults: inherited, context: context)
        }

        mutating func superDecoder() throws -> any Decoder {
            let inherited = inherited
            return FillingDecoder(base: try base.superDecoder(), defaults: inherited, context: context)
        }
    }

    struct Single: SingleValueDecodingContainer {
        let base: any SingleValueDecodingContainer
        let decoder: any Decoder
        let defaults: [RawJSON]
        let context: FillingContext

        var codingPath: [any CodingKey] { base.codingPath }

        func decodeNil() -> Bool { base.decodeNil() }
        func decode(_ type: Bool.Type) throws -> Bool { try base.decode(type) }
        func decode(_ type: String.Type) throws -> String { try base.decode(type) }
        func decode(_ type: Double.Type) throws -> Double { try base.decode(type) }
        func decode(_ type: Float.Type) throws -> Float { try base.decode(type) }
        func decode(_ type: Int.Type) throws -> Int { try base.decode(type) }
        func decode(_ type: Int8.Type) throws -> Int8 { try base.decode(type) }
        func decode(_ type: Int16.Type) throws -> Int16 { try base.decode(type) }
        func decode(_ type: Int32.Type) throws -> Int32 { try base.decode(type) }
        func decode(_ type: Int64.Type) throws -> Int64 { try base.decode(type) }
        func decode(_ type: UInt.Type) throws -> UInt { try base.decode(type) }
        func decode(_ type: UInt8.Type) throws -> UInt8 { try base.decode(type) }
        func decode(_ type: UInt16.Type) throws -> UInt16 { try base.decode(type) }
        func decode(_ type: UInt32.Type) throws -> UInt32 { try base.decode(type) }
        func decode(_ type: UInt64.Type) throws -> UInt64 { try base.decode(type) }

        func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
            try FillingDecoder.decode(type, from: decoder, around: defaults, context)
        }
    }
}

extension DeclaresDefaults {
    /// The defaults as JSON; nil if there are none, or they do not encode.
    fileprivate static func encodedDefaults() throws -> RawJSON? {
        guard let value = defaults as? any Encodable else { return nil }
        return RawJSON(trusted: try StateCoder.encode(value: value)[...])
    }
}
