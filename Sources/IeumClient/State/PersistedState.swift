import Foundation
import Wire

/// A stored game without its type: the JSON object as it lies on the disk.
///
/// Keys keep their order, and values their text: a number of twenty digits, or a key that only a newer app knows, comes out
/// as it went in. The old and the new object of a schema migration stand on this.
public struct PersistedState: Hashable, Sendable {
    private(set) var members: [RawJSON.Member]

    /// An object without keys.
    public init() {
        members = []
    }

    /// Reads an object's text.
    /// - Throws: ``StoreError`` `invalidState` when the text is no JSON object.
    public init(json bytes: some Sequence<UInt8>) throws(StoreError) {
        let raw = try RawJSON(checking: Array(bytes))
        guard let members = raw.members else {
            throw StoreError(.invalidState, "the state is of type \(raw.kind.rawValue), not an object")
        }
        self.members = members
    }

    init(members: [RawJSON.Member]) {
        self.members = members
    }

    /// The object's text.
    public var json: Data { Data(bytes) }

    /// The object's text.
    package var bytes: [UInt8] { RawJSON.object(members) }

    /// The keys, in their order.
    public var keys: [String] { members.map { String(decoding: $0.key, as: UTF8.self) } }

    /// Whether there is a key, `null` or not.
    public func contains(_ key: String) -> Bool { raw(key) != nil }

    /// The type that a key's value has in the JSON text: `object`, `array`, `string`, `number`, `bool` or `null`; nil: no
    /// such key.
    public func storedType(of key: String) -> String? { raw(key)?.kind.rawValue }

    /// The text of a key's value; nil: no such key.
    public func json(of key: String) -> Data? { raw(key).map { Data($0.text) } }

    /// Sets a key's value by its text, in the key's place, or at the end.
    /// - Throws: ``StoreError`` `invalidState` when the text is no JSON value.
    public mutating func set(_ key: String, json bytes: some Sequence<UInt8>) throws(StoreError) {
        set(key, try RawJSON(checking: Array(bytes)))
    }

    /// Removes a key and its value; nothing happens when there is none.
    public mutating func remove(_ key: String) {
        members.removeAll { $0.key.elementsEqual(key.utf8) }
    }

    /// Gives a value another key, in its place; what the other key held is gone. Nothing happens when there is none.
    public mutating func rename(_ key: String, to other: String) {
        guard key.utf8.elementsEqual(other.utf8) == false, contains(key) else { return }
        remove(other)
        for index in members.indices where members[index].key.elementsEqual(key.utf8) {
            members[index].key = Array(other.utf8)
        }
    }

    /// A key's value, as it stands there.
    package func raw(_ key: String) -> RawJSON? {
        members.last { $0.key.elementsEqual(key.utf8) }?.value
    }

    /// Sets a key's value, in the key's place, or at the end.
    package mutating func set(_ key: String, _ value: RawJSON) {
        guard let index = members.lastIndex(where: { $0.key.elementsEqual(key.utf8) }) else {
            members.append(RawJSON.Member(key: Array(key.utf8), value: value))
            return
        }
        members[index].value = value
    }
}
