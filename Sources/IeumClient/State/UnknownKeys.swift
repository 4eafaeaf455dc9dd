/// Keeps what a value does not carry: keys that only a newer app knows, fields that a hand-made mapping has no place for,
/// digits that a `Double` has no room for.
///
/// A merge of three: what is stored, what decoding and encoding leaves of it, and the new value. Where the new value says
/// what was left of the stored text, the app has changed nothing and the stored text stays; where it differs, it counts;
/// keys that are in the stored text alone stay. Objects are merged by path, arrays element by element where the element is
/// otherwise unchanged, wherever it has moved to.
enum UnknownKeys {
    /// The text to store.
    /// - Parameters:
    ///   - old: what is stored.
    ///   - known: what decoding and encoding `old` leaves of it.
    ///   - new: the value to store, from the same encoder.
    static func carried(from old: RawJSON, known: RawJSON, into new: RawJSON) -> RawJSON {
        if new == known { return old }
        guard old.kind == known.kind, known.kind == new.kind, old != known else { return new }
        switch new.kind {
        case .object: return object(old, known, new)
        case .array: return array(old, known, new)
        case .string, .number, .bool, .null: return new
        }
    }

    private static func object(_ old: RawJSON, _ known: RawJSON, _ new: RawJSON) -> RawJSON {
        guard var members = new.members else { return new }
        let (oldMembers, knownMembers) = (old.lastMembers, known.lastMembers)
        var newKeys: Set<[UInt8]> = []
        for index in members.indices {
            let key = members[index].key
            newKeys.insert(key)
            guard let before = oldMembers[key], let read = knownMembers[key] else { continue }
            members[index].value = carried(from: before, known: read, into: members[index].value)
        }
        for member in old.members ?? [] where knownMembers[member.key] == nil {
            guard newKeys.insert(member.key).inserted, let value = oldMembers[member.key] else { continue }
            members.append(RawJSON.Member(key: member.key, value: value))
        }
        return RawJSON(trusted: RawJSON.object(members)[...])
    }

    private static func array(_ old: RawJSON, _ known: RawJSON, _ new: RawJSON) -> RawJSON {
        guard let before = old.elements, let read = known.elements, before.count == read.count,
            var elements = new.elements
        else { return new }
        // Same place first; else the first equal element that is not taken yet.
        var moved: [RawJSON: [Int]] = [:]
        for index in read.indices.reversed() where index >= elements.count || elements[index] != read[index] {
            moved[read[index], default: []].append(index)
        }
        for index in elements.indices {
            let isInPlace = index < read.count && elements[index] == read[index]
            if let source = isInPlace ? index : moved[elements[index]]?.popLast() {
                elements[index] = before[source]
            } else if elements.count == read.count {
                // Changed where it stands: its unknown keys are its own still.
                elements[index] = carried(from: before[index], known: read[index], into: elements[index])
            }
        }
        return RawJSON(trusted: RawJSON.array(elements)[...])
    }
}
