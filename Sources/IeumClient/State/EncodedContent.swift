/// What one value has written so far: where its parts stand among the ``StateWriting``'s bytes.
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

    /// A member, or an element, or the one value: numbers alone, so that forgetting a thousand of them costs nothing.
    struct Part {
        /// Where its text begins: a member's with its key, `"key":`; an element's with the value.
        var start: Int
        /// Where its value begins.
        var value: Int
        /// Where its text ends; of a value that is an inner one, where that one is to stand.
        var end: Int
        /// Which of the ``EncodedContent/inners`` its value is; negative: it is a text.
        var inner = -1
        /// Made by `nestedContainer`: asked for a second time under the same key, both are one container.
        var isNested = false
    }

    enum Kind {
        case nothing, value, object, array
    }

    @exclusivity(unchecked) var kind = Kind.nothing
    /// In the order in which they were written.
    @exclusivity(unchecked) var parts: [Part] = []
    @exclusivity(unchecked) var inners: [EncodedContent] = []
    /// Whether all keys are of ASCII and nothing in them is escaped: then the order of their bytes is theirs.
    @exclusivity(unchecked) var isPlain = true
    /// Whether the members came in the order of their keys, each key once.
    @exclusivity(unchecked) var isAscending = true
    /// Where the container's text begins.
    @exclusivity(unchecked) var start: Int?
    /// How far its text goes that stands there already, but for the last bracket; nil: not all of it stands there.
    @exclusivity(unchecked) var end: Int?

    /// Ready for the next value.
    func reset() {
        kind = .nothing
        (isPlain, isAscending) = (true, true)
        (start, end) = (nil, nil)
        parts.removeAll(keepingCapacity: parts.count <= 64)
        if !inners.isEmpty { inners = [] }
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
