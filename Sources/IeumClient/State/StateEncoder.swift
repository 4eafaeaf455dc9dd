/// Writes a value as a state: JSON in UTF-8, keys sorted, no white space. See ``Persistable`` for the forms of dates, data and
/// numbers.
///
/// The same bytes as Foundation's `JSONEncoder` gives with sorted keys, unescaped slashes and those forms, which were the
/// states' first encoder, in a small part of its time. What `JSONEncoder` stops the process for is an error here: two
/// different containers for one value, a value that never ends.
struct StateEncoder: Encoder {
    let slot: EncodingSlot

    private var writing: StateWriting { slot.writing }

    var codingPath: [any CodingKey] { slot.toldPath }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(StateObjectWriter<Key>(slot: slot(for: .object)))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { StateArrayWriter(slot: slot(for: .array)) }

    /// The slot as a container; one that leads nowhere if it is something else already.
    private func slot(for kind: EncodedContent.Kind) -> EncodingSlot {
        writing.willWrite(slot)
        if slot.content.kind == .nothing { writing.begin(slot.content, kind) }
        guard slot.content.kind != kind else { return slot }
        writing.fail(slot, "the value was written as one kind of container, and is to be written as another")
        return slot.nowhere(kind)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension StateEncoder: SingleValueEncodingContainer {
    private func set(_ node: @autoclosure () throws -> EncodedContent.Node) throws {
        writing.willWrite(slot)
        guard slot.content.kind == .nothing else {
            throw writing.invalid("", at: slot.path, "the value was written already, and is to be written again")
        }
        slot.content.kind = .value
        try writing.addElement(to: slot.content, node)
    }

    func encodeNil() throws { try set(.text(writing.null())) }
    func encode(_ value: Bool) throws { try set(.text(writing.bool(value))) }
    func encode(_ value: String) throws { try set(.text(writing.string(value))) }
    func encode(_ value: Double) throws { try set(.text(writing.double(value))) }
    func encode(_ value: Float) throws { try set(.text(writing.double(value))) }
    func encode(_ value: Int) throws { try set(.text(writing.integer(value))) }
    func encode(_ value: Int8) throws { try set(.text(writing.integer(value))) }
    func encode(_ value: Int16) throws { try set(.text(writing.integer(value))) }
    func encode(_ value: Int32) throws { try set(.text(writing.integer(value))) }
    func encode(_ value: Int64) throws { try set(.text(writing.integer(value))) }
    func encode(_ value: Int128) throws { try set(.text(writing.integer(value))) }
    func encode(_ value: UInt) throws { try set(.text(writing.integer(value))) }
    func encode(_ value: UInt8) throws { try set(.text(writing.integer(value))) }
    func encode(_ value: UInt16) throws { try set(.text(writing.integer(value))) }
    func encode(_ value: UInt32) throws { try set(.text(writing.integer(value))) }
    func encode(_ value: UInt64) throws { try set(.text(writing.integer(value))) }
    func encode(_ value: UInt128) throws { try set(.text(writing.integer(value))) }

    func encode<Value: Encodable>(_ value: Value) throws {
        // One deeper: a value that is made of itself does not go on for ever.
        try set(writing.whole(value, in: slot, .root))
    }
}

/// The `Encoder`'s side of an object.
struct StateObjectWriter<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let slot: EncodingSlot

    private var writing: StateWriting { slot.writing }

    var codingPath: [any CodingKey] { slot.toldPath }

    @inline(__always)
    private func set(_ key: Key, _ node: @autoclosure () throws -> EncodedContent.Node) rethrows {
        writing.willWrite(slot)
        try writing.addMember(key.stringValue, to: slot.content, node)
    }

    func encodeNil(forKey key: Key) { set(key, .text(writing.null())) }
    func encode(_ value: Bool, forKey key: Key) { set(key, .text(writing.bool(value))) }
    func encode(_ value: String, forKey key: Key) { set(key, .text(writing.string(value))) }
    func encode(_ value: Double, forKey key: Key) { set(key, .text(writing.double(value))) }
    func encode(_ value: Float, forKey key: Key) { set(key, .text(writing.double(value))) }
    func encode(_ value: Int, forKey key: Key) { set(key, .text(writing.integer(value))) }
    func encode(_ value: Int8, forKey key: Key) { set(key, .text(writing.integer(value))) }
    func encode(_ value: Int16, forKey key: Key) { set(key, .text(writing.integer(value))) }
    func encode(_ value: Int32, forKey key: Key) { set(key, .text(writing.integer(value))) }
    func encode(_ value: Int64, forKey key: Key) { set(key, .text(writing.integer(value))) }
    func encode(_ value: Int128, forKey key: Key) { set(key, .text(writing.integer(value))) }
    func encode(_ value: UInt, forKey key: Key) { set(key, .text(writing.integer(value))) }
    func encode(_ value: UInt8, forKey key: Key) { set(key, .text(writing.integer(value))) }
    func encode(_ value: UInt16, forKey key: Key) { set(key, .text(writing.integer(value))) }
    func encode(_ value: UInt32, forKey key: Key) { set(key, .text(writing.integer(value))) }
    func encode(_ value: UInt64, forKey key: Key) { set(key, .text(writing.integer(value))) }
    func encode(_ value: UInt128, forKey key: Key) { set(key, .text(writing.integer(value))) }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        try set(key, writing.whole(value, in: slot, .key(key)))
    }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key)
        -> KeyedEncodingContainer<Nested>
    {
        KeyedEncodingContainer(StateObjectWriter<Nested>(slot: inner(key, .object)))
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        StateArrayWriter(slot: inner(key, .array))
    }

    func superEncoder() -> any Encoder { superEncoder(for: StatePathKey.super) }

    func superEncoder(forKey key: Key) -> any Encoder { superEncoder(for: key) }

    private func superEncoder(for key: some CodingKey) -> any Encoder {
        StateEncoder(slot: inner(key, .nothing))
    }

    /// Puts a container, or what an encoder will write, under a key; nothing once it is too deep.
    private func inner(_ key: some CodingKey, _ kind: EncodedContent.Kind) -> EncodingSlot {
        writing.willWrite(slot)
        guard let inner = writing.inner(of: slot, .key(key)) else { return slot.nowhere(kind) }
        inner.content.kind = kind
        writing.addMember(key.stringValue, to: slot.content, inner: inner.content, isNested: kind != .nothing)
        return inner
    }
}

/// The `Encoder`'s side of an array.
struct StateArrayWriter: UnkeyedEncodingContainer {
    let slot: EncodingSlot

    private var writing: StateWriting { slot.writing }

    var codingPath: [any CodingKey] { slot.toldPath }
    var count: Int { slot.content.parts.count }

    @inline(__always)
    private func add(_ node: @autoclosure () throws -> EncodedContent.Node) rethrows {
        writing.willWrite(slot)
        try writing.addElement(to: slot.content, node)
    }

    func encodeNil() { add(.text(writing.null())) }
    func encode(_ value: Bool) { add(.text(writing.bool(value))) }
    func encode(_ value: String) { add(.text(writing.string(value))) }
    func encode(_ value: Double) { add(.text(writing.double(value))) }
    func encode(_ value: Float) { add(.text(writing.double(value))) }
    func encode(_ value: Int) { add(.text(writing.integer(value))) }
    func encode(_ value: Int8) { add(.text(writing.integer(value))) }
    func encode(_ value: Int16) { add(.text(writing.integer(value))) }
    func encode(_ value: Int32) { add(.text(writing.integer(value))) }
    func encode(_ value: Int64) { add(.text(writing.integer(value))) }
    func encode(_ value: Int128) { add(.text(writing.integer(value))) }
    func encode(_ value: UInt) { add(.text(writing.integer(value))) }
    func encode(_ value: UInt8) { add(.text(writing.integer(value))) }
    func encode(_ value: UInt16) { add(.text(writing.integer(value))) }
    func encode(_ value: UInt32) { add(.text(writing.integer(value))) }
    func encode(_ value: UInt64) { add(.text(writing.integer(value))) }
    func encode(_ value: UInt128) { add(.text(writing.integer(value))) }

    func encode<Value: Encodable>(_ value: Value) throws {
        try add(writing.whole(value, in: slot, .index(count)))
    }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        KeyedEncodingContainer(StateObjectWriter<Nested>(slot: inner(.object)))
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        StateArrayWriter(slot: inner(.array))
    }

    func superEncoder() -> any Encoder { StateEncoder(slot: inner(.nothing)) }

    /// Adds a container, or what an encoder will write; nothing once it is too deep.
    private func inner(_ kind: EncodedContent.Kind) -> EncodingSlot {
        guard let inner = writing.inner(of: slot, .index(count)) else { return slot.nowhere(kind) }
        inner.content.kind = kind
        add(.inner(inner.content))
        return inner
    }
}

extension EncodingSlot {
    /// A slot for what is lost.
    fileprivate func nowhere(_ kind: EncodedContent.Kind) -> EncodingSlot {
        let slot = EncodingSlot(writing, in: nil, .root, call: call)
        slot.content.kind = kind
        return slot
    }
}
