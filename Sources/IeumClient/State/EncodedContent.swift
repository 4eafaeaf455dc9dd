/// What one value has written so far.
///
/// Once the value is complete it is one text, and the object is used for the next one. It stays a tree where a type keeps a
/// container or a `superEncoder` for later, since it may write its containers in any order and more than one at a time.
///
/// An encoding is of one thread, and none of these properties is touched while an access to it is under way: the checks of that
/// at run time took a fifth of the time of an encoding.
final class EncodedContent {
    enum Node {
        /// A complete value: its text is this range of the ``StateWriting``'s bytes.
        case text(Range<Int>)
        /// A container, or what a `superEncoder` writes, now or later.
        case inner(EncodedContent)
    }

    struct Member {
        var key: String
        var node: Node
        /// Made by `nestedContainer`: asked for a second time under the same key, both are one container.
        var isNested = false
    }

    enum Kind {
        case nothing, value, object, array
    }

    @exclusivity(unchecked) var kind = Kind.nothing
    /// Of a value its one node, of an array its elements.
    @exclusivity(unchecked) var nodes: [Node] = []
    /// Of an object, in the order in which they were written.
    @exclusivity(unchecked) var members: [Member] = []

    /// Whether the members came in their order, all with keys of ASCII.
    @exclusivity(unchecked) private var isAscending = true

    /// Adds a member to an object.
    func add(_ member: Member) {
        if isAscending {
            isAscending =
                member.key.utf8.allSatisfy { $0 < 0x80 }
                && (members.isEmpty || members[members.count - 1].key < member.key)
        }
        members.append(member)
    }

    /// Ready for the next value.
    func reset() {
        kind = .nothing
        isAscending = true
        nodes.removeAll(keepingCapacity: nodes.count <= 64)
        members.removeAll(keepingCapacity: members.count <= 64)
    }

    /// Brings the members into the order of their keys' bytes; of a key that was written twice the last value stays, and of
    /// nested containers the sum.
    func sortMembers() {
        guard members.count > 1, !isAscending else { return }
        // Of ASCII, the order of Swift is that of the bytes, and what is equal stands together.
        guard members.allSatisfy({ $0.key.utf8.allSatisfy { $0 < 0x80 } }) else { return sortWideMembers() }
        if members.count <= 16 {
            for index in 1..<members.count {
                var place = index
                while place > 0, members[place].key < members[place - 1].key {
                    members.swapAt(place, place - 1)
                    place -= 1
                }
            }
        } else {
            // The standard library's sort is stable, and is said to stay so.
            members.sort { $0.key < $1.key }
        }
        for index in 1..<members.count where members[index - 1].key == members[index].key {
            members = Self.withoutTwins(members)
            return
        }
    }

    private func sortWideMembers() {
        members = Self.withoutTwins(members)
        members.sort { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }

    private static func withoutTwins(_ members: [Member]) -> [Member] {
        var places: [String: Int] = [:]
        var single: [Member] = []
        for member in members {
            if let place = places[member.key] {
                single[place] = united(single[place], member)
            } else {
                places[member.key] = single.count
                single.append(member)
            }
        }
        return single
    }

    private static func united(_ first: Member, _ second: Member) -> Member {
        var second = second
        // As a dictionary has it: the first spelling of the key, the last value.
        second.key = first.key
        guard second.isNested, case .inner(let left) = first.node, case .inner(let right) = second.node,
            left.kind == right.kind
        else { return second }
        let both = EncodedContent()
        both.kind = right.kind
        both.nodes = left.nodes + right.nodes
        for member in left.members + right.members { both.add(member) }
        second.node = .inner(both)
        return second
    }
}

/// Where one value is written to, and where it stands.
final class EncodingSlot {
    enum Step {
        case root
        case key(any CodingKey)
        case index(Int)
    }

    let writing: StateWriting
    let content: EncodedContent
    @exclusivity(unchecked) private(set) var parent: EncodingSlot?
    @exclusivity(unchecked) private(set) var step: Step
    /// How many values this one is in.
    @exclusivity(unchecked) private(set) var depth: Int
    /// Which call of a value's `encode(to:)` it belongs to.
    @exclusivity(unchecked) private(set) var call: Int

    init(_ writing: StateWriting, in parent: EncodingSlot?, _ step: Step, call: Int) {
        self.writing = writing
        content = EncodedContent()
        self.parent = parent
        self.step = step
        self.call = call
        depth = (parent?.depth ?? -1) + 1
    }

    /// Moves to another place.
    func move(into parent: EncodingSlot?, _ step: Step, call: Int) {
        self.parent = parent
        self.step = step
        self.call = call
        depth = (parent?.depth ?? -1) + 1
    }

    /// Lets go of the place, and forgets what was written.
    func leave() {
        parent = nil
        step = .root
        content.reset()
    }

    /// The path, for the type that writes here.
    var toldPath: [any CodingKey] {
        writing.pathsRead += 1
        return path
    }

    var path: [any CodingKey] {
        var path: [any CodingKey] = []
        var slot: EncodingSlot? = self
        while let here = slot {
            switch here.step {
            case .root: break
            case .key(let key): path.append(key)
            case .index(let index): path.append(StatePathKey(intValue: index))
            }
            slot = here.parent
        }
        return path.reversed()
    }
}

/// A step of a coding path that no type has a key for.
struct StatePathKey: CodingKey {
    var stringValue: String
    var intValue: Int?

    init(stringValue: String) { self.stringValue = stringValue }

    init(intValue: Int) {
        self.intValue = intValue
        stringValue = "Index \(intValue)"
    }

    static let `super` = StatePathKey(stringValue: "super")
}
