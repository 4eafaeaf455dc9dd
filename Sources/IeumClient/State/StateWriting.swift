import Foundation
import Synchronization
import Wire

/// One encoding: the texts of the simple values, and what went wrong where nothing can be thrown.
///
/// Of one thread, and kept from one encoding to the next with what it has allocated. See ``EncodedContent`` for why its
/// properties are not checked at run time.
final class StateWriting {
    /// How many values may be in one another: more than a state's nesting can be, since a value may be made of another one
    /// without a container of its own. A value without an end stops here, and not at the end of the stack.
    static let maxDepth = 2 * Limits.maxStateDepth

    @exclusivity(unchecked) var bytes: [UInt8] = []
    @exclusivity(unchecked) private(set) var trouble: EncodingError?
    /// The call of `encode(to:)` that is under way, the innermost one.
    @exclusivity(unchecked) private var call = 0
    @exclusivity(unchecked) private var lastCall = 0
    /// Somebody writes to a container that is not its own, or keeps one: from now on nothing is taken for complete.
    @exclusivity(unchecked) private var keepsTree = false
    @exclusivity(unchecked) private var idle: [EncodingSlot] = []
    @exclusivity(unchecked) private var scratch: [UInt8] = []
    @exclusivity(unchecked) private var texts = SmallTexts()
    /// The greatest depth of a value, and of a container that a type nests by itself.
    @exclusivity(unchecked) private var deepest = 0
    /// Whether a text holds U+0000.
    @exclusivity(unchecked) private var hasNUL = false
    /// How often a type asked where it is: then what it writes may depend on that.
    @exclusivity(unchecked) var pathsRead = 0

    /// Begins an encoding: with the one of the last encoding, unless another thread has it.
    private static func begin() -> StateWriting {
        let last = kept.withLock { kept in
            defer { kept = nil }
            return kept?.writing
        }
        let writing = last ?? StateWriting()
        writing.bytes.reserveCapacity(4_096)
        return writing
    }

    /// Keeps what was allocated for the next encoding; only after one that went well, when no type has a container still.
    ///
    /// The first of several that are over stays: one that is kept is never dropped, since its slots know it.
    private func keep() {
        (call, lastCall, deepest, hasNUL, pathsRead) = (0, 0, 0, false, 0)
        bytes = []
        if scratch.capacity > 65_536 { scratch = [] }
        if idle.count > 32 { idle = [] }
        texts.endEncoding()
        let mine = Kept(writing: self)
        let isKept = Self.kept.withLock { kept in
            if kept == nil { kept = mine }
            return kept?.writing === mine.writing
        }
        if !isKept { idle = [] }
    }

    /// `@unchecked Sendable`: who takes it is the only one who has it.
    private struct Kept: @unchecked Sendable {
        let writing: StateWriting
    }

    private static let kept = Mutex<Kept?>(nil)

    /// The text of a value.
    static func state(of value: some Encodable) throws -> [UInt8] { try provenState(of: value).text }

    /// The text of a value, and whether it is certain to pass ``JSONCheck``, as all but a few are: it is JSON by its making, and
    /// what else is checked was seen on the way.
    static func provenState(of value: some Encodable) throws -> (text: [UInt8], isProven: Bool) {
        let writing = begin()
        var isOver = false
        defer {
            // Slots know the writing, too.
            if isOver { writing.keep() } else { writing.idle = [] }
        }
        guard let node = try writing.node(value, in: nil, .root) else {
            throw writing.trouble
                ?? EncodingError.invalidValue(
                    value,
                    EncodingError.Context(
                        codingPath: [], debugDescription: "\(type(of: value)) encodes nothing at all"))
        }
        if let trouble = writing.trouble { throw trouble }
        isOver = !writing.keepsTree
        let isProven = !writing.hasNUL && writing.deepest < Limits.maxStateDepth
        switch node {
        case .text(let range):
            return (range.count == writing.bytes.count ? writing.bytes : Array(writing.bytes[range]), isProven)
        case .inner(let content):
            // Its parts may stand deeper than where they were written.
            var text: [UInt8] = []
            writing.print(content, into: &text)
            return (text, false)
        }
    }

    /// Says what is wrong once the encoding is over: what a container or an encoder is asked for cannot throw.
    func fail(_ slot: EncodingSlot, _ reason: String) {
        guard trouble == nil else { return }
        trouble = EncodingError.invalidValue(
            "", EncodingError.Context(codingPath: slot.path, debugDescription: reason))
    }

    func invalid(_ value: Any, at path: [any CodingKey], _ reason: String) -> EncodingError {
        .invalidValue(value, EncodingError.Context(codingPath: path, debugDescription: reason))
    }

    /// A place for a container inside another one; nil, and the encoding fails, when it is too deep.
    func inner(of slot: EncodingSlot, _ step: EncodingSlot.Step) -> EncodingSlot? {
        guard slot.depth < Self.maxDepth else {
            fail(slot, Self.tooDeep)
            return nil
        }
        deepest = max(deepest, slot.depth + 1)
        return EncodingSlot(self, in: slot, step, call: slot.call)
    }

    /// Takes note that a slot is written to.
    func willWrite(_ slot: EncodingSlot) {
        if slot.call != call { keepsTree = true }
    }

    private static let tooDeep = "the value is nested more than \(maxDepth) levels deep"

    // MARK: Values

    /// What is known of a value's type.
    enum ValueKind {
        case unknown
        case list(any EncodedList.Type)
        case noList
    }

    /// What a value writes; nil: nothing.
    func node(
        _ value: some Encodable, _ kind: ValueKind = .unknown, in parent: EncodingSlot?,
        _ step: @autoclosure () -> EncodingSlot.Step
    ) throws -> EncodedContent.Node? {
        if let text = try simple(value, { path(parent, step()) }) { return .text(text) }
        if let parent, parent.depth >= Self.maxDepth {
            throw invalid("", at: path(parent, step()), Self.tooDeep)
        }
        let small = SmallValue(value)
        if let small, let text = texts.text(of: small) {
            let start = bytes.count
            texts.bytes.withUnsafeBufferPointer {
                bytes.append(contentsOf: UnsafeBufferPointer(rebasing: $0[text.range]))
            }
            deepest = max(deepest, (parent?.depth ?? -1) + text.levels)
            return .text(start..<bytes.count)
        }
        let pathsBefore = pathsRead
        let outer = call
        lastCall += 1
        call = lastCall
        defer { call = outer }
        let start = bytes.count
        var slot: EncodingSlot
        if let known = idle.popLast() {
            slot = known
            slot.move(into: parent, step(), call: call)
        } else {
            slot = EncodingSlot(self, in: parent, step(), call: call)
        }
        let (depth, deepestBefore) = (slot.depth, deepest)
        deepest = depth
        defer { deepest = max(deepest, deepestBefore) }
        switch kind {
        case .list(let list):
            begin(slot.content, .array)
            try withUnsafePointer(to: value) { try list.write(at: $0, to: slot) }
        case .unknown where small == nil:
            guard let list = value as? any EncodedList else { fallthrough }
            begin(slot.content, .array)
            try list.write(to: slot)
        case .unknown, .noList: try value.encode(to: StateEncoder(slot: slot))
        }
        // Whoever holds the slot still may write more; a container inside it holds it as the one that it is in.
        if keepsTree || !isKnownUniquelyReferenced(&slot) {
            keepsTree = true
            return slot.content.kind == .nothing ? nil : .inner(slot.content)
        }
        let isEmpty = slot.content.kind == .nothing
        let range = isEmpty ? nil : complete(slot.content, from: start)
        slot.leave()
        idle.append(slot)
        guard let range else { return nil }
        if let small, pathsRead == pathsBefore {
            texts.learn(small, range, of: bytes, levels: deepest - depth + 1)
        }
        return .text(range)
    }

    /// What a value writes that must write something; an empty object if it does not.
    func whole(
        _ value: some Encodable, _ kind: ValueKind = .unknown, in parent: EncodingSlot,
        _ step: @autoclosure () -> EncodingSlot.Step
    ) throws -> EncodedContent.Node {
        if let node = try node(value, kind, in: parent, step()) { return node }
        if !keepsTree { return .text(ascii("{}")) }
        // Written later, or never.
        let empty = EncodedContent()
        empty.kind = .object
        return .inner(empty)
    }

    /// Whether the texts of a small type's values may be taken from earlier ones.
    func knowsTexts<Value>(of type: Value.Type) -> Bool { texts.isProven(ObjectIdentifier(type)) }

    /// Appends the texts of an array's elements, with commas between them, up to the first whose text is not known.
    /// - Returns: that one, or the elements' count.
    func appendKnownTexts<Element>(of array: [Element], from first: Int, in slot: EncodingSlot) -> Int {
        let known = array.withUnsafeBytes {
            texts.append(Element.self, $0, from: first, count: array.count, to: &bytes)
        }
        deepest = max(deepest, slot.depth + known.levels)
        return known.next
    }

    /// Puts the text of a complete value in the place of the texts of its parts, which were all written since `start`.
    private func complete(_ content: EncodedContent, from start: Int) -> Range<Int> {
        if content.kind == .value, let value = content.parts.first, value.start == start, value.end == bytes.count,
            value.inner < 0
        {
            return start..<bytes.count
        }
        if content.start == start, content.end == bytes.count {
            bytes.append(content.kind == .array ? UInt8(ascii: "]") : UInt8(ascii: "}"))
            return start..<bytes.count
        }
        scratch.removeAll(keepingCapacity: true)
        print(content, into: &scratch)
        bytes.removeLast(bytes.count - start)
        bytes.append(contentsOf: scratch)
        return start..<bytes.count
    }

    private func path(_ parent: EncodingSlot?, _ step: EncodingSlot.Step) -> [any CodingKey] {
        EncodingSlot(self, in: parent, step, call: 0).path
    }

    /// The text of a value that has no parts, or that states have a form of their own for.
    private func simple<Value: Encodable>(_ value: Value, _ path: () -> [any CodingKey]) throws -> Range<Int>? {
        // Compared as types, so that a specialized caller pays nothing.
        if Value.self == String.self, let value = value as? String { return string(value) }
        if Value.self == Int.self, let value = value as? Int { return integer(value) }
        if Value.self == Bool.self, let value = value as? Bool { return bool(value) }
        // Foundation's are not as small as this, and asking which types they are costs more than a small value does.
        guard MemoryLayout<Value>.size >= 8 else { return nil }
        if Value.self == Double.self, let value = value as? Double { return double(value) }
        if Value.self == Date.self, let value = value as? Date { return try date(value, path) }
        if Value.self == Data.self, let value = value as? Data { return string(value.base64EncodedString()) }
        if Value.self == URL.self, let value = value as? URL { return string(value.absoluteString) }
        if Value.self == Decimal.self, let value = value as? Decimal { return try decimal(value, path) }
        return nil
    }

    private func date(_ date: Date, _ path: () -> [any CodingKey]) throws -> Range<Int> {
        let start = bytes.count
        bytes.append(UInt8(ascii: "\""))
        guard DateText.append(date, to: &bytes) else {
            // Not the date itself: Foundation stops the process when one that is no number is described.
            throw invalid(date.timeIntervalSinceReferenceDate, at: path(), "dates are of the years 0000 to 9999")
        }
        bytes.append(UInt8(ascii: "\""))
        return start..<bytes.count
    }

    private func decimal(_ decimal: Decimal, _ path: () -> [any CodingKey]) throws -> Range<Int> {
        guard !decimal.isNaN else { throw invalid("NaN", at: path(), "the number is none") }
        return ascii(decimal.description)
    }

    func null() -> Range<Int> { ascii("null") }

    func bool(_ value: Bool) -> Range<Int> { ascii(value ? "true" : "false") }

    func integer(_ value: some FixedWidthInteger) -> Range<Int> {
        let start = bytes.count
        if value >= 0, value < 10 {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value))
        } else {
            bytes.append(contentsOf: value.description.utf8)
        }
        return start..<bytes.count
    }

    func double(_ value: some BinaryFloatingPoint & LosslessStringConvertible) -> Range<Int> {
        guard value.isFinite else {
            return string(value.isNaN ? "NaN" : value < 0 ? "-Infinity" : "Infinity")
        }
        let range = ascii(value.description)
        // "1.0" is written "1".
        guard bytes.count - range.lowerBound > 2, bytes[bytes.count - 1] == UInt8(ascii: "0"),
            bytes[bytes.count - 2] == UInt8(ascii: ".")
        else { return range }
        bytes.removeLast(2)
        return range.lowerBound..<bytes.count
    }

    func string(_ text: String) -> Range<Int> {
        let start = bytes.count
        append(text)
        return start..<bytes.count
    }

    /// Appends a text.
    /// - Returns: whether it is of ASCII, and nothing had to be escaped.
    @discardableResult
    func append(_ text: String) -> Bool {
        let isPlain = bytes.append(stateText: text)
        if !isPlain, text.utf8.contains(0) { hasNUL = true }
        return isPlain
    }

    private func ascii(_ text: String) -> Range<Int> {
        let start = bytes.count
        bytes.append(contentsOf: text.utf8)
        return start..<bytes.count
    }
}

/// An array, whose elements are written as its own `encode(to:)` does it, without the containers.
protocol EncodedList {
    func write(to slot: EncodingSlot) throws
    /// Writes the list of this type that is at an address.
    static func write(at address: UnsafeRawPointer, to slot: EncodingSlot) throws
}

extension Array: EncodedList where Element: Encodable {
    func write(to slot: EncodingSlot) throws {
        let (writing, content) = (slot.writing, slot.content)
        let areSmall = SmallValue.holds(Element.self)
        // Asked once: the answer takes longer than a small element does.
        let kind: StateWriting.ValueKind =
            if !areSmall, let list = Element.self as? any EncodedList.Type { .list(list) } else { .noList }
        var index = 0
        while index < count {
            if areSmall {
                index = writing.addKnownElements(of: self, from: index, to: slot)
                if index == count { return }
            }
            try writing.addElement(to: content) { try writing.whole(self[index], kind, in: slot, .index(index)) }
            index += 1
        }
    }

    static func write(at address: UnsafeRawPointer, to slot: EncodingSlot) throws {
        try address.assumingMemoryBound(to: Self.self).pointee.write(to: slot)
    }
}
