/// An encoder that writes nothing, and takes note of the keys on the first level, those of nils included.
final class KeySpy: Encoder {
    private(set) var names: Set<String> = []
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Keyed<Key>(spy: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { Ignored() }
    func singleValueContainer() -> any SingleValueEncodingContainer { Ignored() }

    fileprivate func note(_ key: some CodingKey) { names.insert(key.stringValue) }

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let spy: KeySpy
        let codingPath: [any CodingKey] = []

        func encodeNil(forKey key: Key) { spy.note(key) }
        func encode<Value: Encodable>(_ value: Value, forKey key: Key) { spy.note(key) }
        func encodeIfPresent<Value: Encodable>(_ value: Value?, forKey key: Key) { spy.note(key) }
        // The simple types have requirements of their own, whose default says nothing of a nil.
        func encodeIfPresent(_ value: Bool?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: String?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: Double?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: Float?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: Int?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: Int8?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: Int16?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: Int32?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: Int64?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: UInt?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: UInt8?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: UInt16?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: UInt32?, forKey key: Key) { spy.note(key) }
        func encodeIfPresent(_ value: UInt64?, forKey key: Key) { spy.note(key) }

        func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key)
            -> KeyedEncodingContainer<Nested>
        {
            spy.note(key)
            return KeyedEncodingContainer(KeySpy.Keyed<Nested>(spy: KeySpy()))
        }

        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            spy.note(key)
            return Ignored()
        }

        func superEncoder() -> any Encoder { KeySpy() }

        func superEncoder(forKey key: Key) -> any Encoder {
            spy.note(key)
            return KeySpy()
        }
    }

    private struct Ignored: UnkeyedEncodingContainer, SingleValueEncodingContainer {
        let codingPath: [any CodingKey] = []
        var count = 0

        func encodeNil() {}
        func encode<Value: Encodable>(_ value: Value) {}
        func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
            KeyedEncodingContainer(KeySpy.Keyed<Nested>(spy: KeySpy()))
        }
        func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { Ignored() }
        func superEncoder() -> any Encoder { KeySpy() }
    }
}
