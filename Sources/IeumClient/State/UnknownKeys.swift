/// Keeps what a newer app wrote and this one does not know.
///
/// Unknown is what the stored text has and the value that was decoded from it has not: `keys(old) − keys(encode(decode(old)))`,
/// nested objects by path, elements of arrays where the element is otherwise unchanged, wherever it has moved to.
enum UnknownKeys {
    /// The text to store: the new value, and what the stored text has that its own value has not.
    /// - Parameters:
    ///   - old: what is stored.
    ///   - known: what decoding and encoding `old` leaves of it.
    ///   - new: the value to store.
    static func carried(from old: RawJSON, known: RawJSON, into new: RawJSON) -> RawJSON {
        // What was not read from the old text as it stands has no unknown keys in it that could be told from known ones.
        guard old.kind == known.kind, known.kind == new.kind, old.text != known.text else { return new }
        switch new.kind {
        case .object: return object(old, known, new)
        case .array: return array(old, known, new)
        case .string, .number, .bool, .null: return new
        }
    }

    private static func object(_ old: RawJSON, _ known: RawJSON, _ new: RawJSON) -> RawJSON {
        let (oldMembers, knownMembers) = (old.lastMembers, known.lastMembers)
        guard var members = new.members else { return new }
        var isChanged = false
        for index in members.indices {
            let member = members[index]
            guard let before = oldMembers[member.key], let read = knownMembers[member.key] else { continue }
            let carried = carried(from: before, known: read, into: member.value)
            if carried != member.value {
                members[index].value = carried
                isChanged = true
            }
        }
        let newKeys = Set(members.map(\.key))
        var added: Set<[UInt8]> = []
        for member in old.members ?? []
        where knownMembers[member.key] == nil && !newKeys.contains(member.key) && added.insert(member.key).inserted {
            members.append(RawJSON.Member(key: member.key, value: oldMembers[member.key] ?? member.value))
            isChanged = true
        }
        return isChanged ? RawJSON(trusted: RawJSON.object(members)[...]) : new
    }

    private static func array(_ old: RawJSON, _ known: RawJSON, _ new: RawJSON) -> RawJSON {
        guard let before = old.elements, let read = known.elements, before.count == read.count, var elements = new.elements
        else { return new }
        // Same place first; else the first equal element that has not been taken.
        var taken = Array(repeating: false, count: read.count)
        var source: [Int?] = Array(repeating: nil, count: elements.count)
        for index in elements.indices where index < read.count && elements[index] == read[index] {
            source[index] = index
            taken[index] = true
        }
        var moved: [RawJSON: [Int]] = [:]
        for index in read.indices.reversed() where !taken[index] { moved[read[index], default: []].append(index) }
        for index in elements.indices where source[index] == nil {
            source[index] = moved[elements[index]]?.popLast()
        }
        var isChanged = false
        for index in elements.indices {
            guard let from = source[index] else { continue }
            let carried = carried(from: before[from], known: read[from], into: elements[index])
            if carried != elements[index] {
                elements[index] = carried
                isChanged = true
            }
        }
        return isChanged ? RawJSON(trusted: RawJSON.array(elements)[...]) : new
    }
}
