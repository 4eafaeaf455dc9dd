/// Keeps what a value does not carry: keys that only a newer app knows, fields that a hand-made mapping has no place for,
/// digits that a `Double` has no room for.
///
/// A merge of three: what is stored, what decoding and encoding leaves of it, and the new value. Where the new value says
/// what was left of the stored text, the app has changed nothing and the stored text stays; where it differs, it counts;
/// keys that are in the stored text alone stay. Objects are merged by path; elements of arrays where they are otherwise
/// unchanged, wherever they have moved to, or have the `id` of an old one, or, without any, stand where it stood.
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
        let sources = elements.indices.map { index in
            index < read.count && elements[index] == read[index] ? index : moved[elements[index]]?.popLast()
        }
        let changed = changedElements(read, elements, sources)
        for index in elements.indices {
            if let source = sources[index] {
                elements[index] = before[source]
            } else if let source = changed[index] {
                elements[index] = carried(from: before[source], known: read[source], into: elements[index])
            }
        }
        return RawJSON(trusted: RawJSON.array(elements)[...])
    }

    /// Of the new elements that equal no old one, those that are an old one still: that one's place by theirs.
    ///
    /// The same `id` says so; where there is none, the same place does, in a list of the same length. An old element that is
    /// taken, because it has moved, is nobody else's.
    private static func changedElements(_ old: [RawJSON], _ new: [RawJSON], _ sources: [Int?]) -> [Int: Int] {
        let taken = Set(sources.compactMap(\.self))
        let (left, added) = (old.indices.filter { !taken.contains($0) }, new.indices.filter { sources[$0] == nil })
        if left.isEmpty || added.isEmpty { return [:] }
        let (oldNames, newNames) = (names(of: left, in: old), names(of: added, in: new))
        var places: [Int: Int] = [:]
        for (name, index) in newNames { places[index] = oldNames[name] }
        guard old.count == new.count else { return places }
        let (known, named) = (Set(oldNames.values), Set(newNames.values))
        for index in added where !taken.contains(index) && !known.contains(index) && !named.contains(index) {
            places[index] = index
        }
        return places
    }

    /// The elements that have an `id` that no other one of these has.
    private static func names(of indices: [Int], in elements: [RawJSON]) -> [RawJSON: Int] {
        var names: [RawJSON: [Int]] = [:]
        for index in indices {
            if let name = elements[index]["id"] { names[name, default: []].append(index) }
        }
        return names.compactMapValues { $0.count == 1 ? $0[0] : nil }
    }
}
