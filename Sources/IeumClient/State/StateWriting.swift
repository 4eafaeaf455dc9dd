import Foundation
import Wire

/// One encoding: the texts of the simple values, and what went wrong where nothing can be thrown.
///
/// Of one thread; see ``EncodedContent`` for why its properties are not checked at run time.
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
    @exclusivity(unchecked) private var texts = SmallTexts.take()
    /// The greatest depth of a value.
    @exclusivity(unchecked) private var deepest = 0
    /// Whether a text holds U+0000.
    @exclusivity(unchecked) private var hasNUL = false
    /// How often a type asked where it is: then what it writes may depend on that.
    @exclusivity(unchecked) var pathsRead = 0

    init() {
        bytes.reserveCapacity(4_096)
    }

    /// The text of a value.
    static func state(of value: some Encodable) throws -> [UInt8] { try provenState(of: value).text }

    /// The text of a value, and whether it is certain to pass ``JSONCheck``, as all but a few are: it is JSON by its making, and
    /// what else is checked was seen on the way.
    static func provenState(of value: some Encodable) throws -> (text: [UInt8], isProven: Bool) {
        let writing = StateWriting()
        defer {
            // Slots know the writing, too.
            writing.idle = []
            writing.texts.putBack()
        }
        guard let node = try writing.node(value, in: nil, .root) else {
            throw writing.trouble
                ?? EncodingError.invalidValue(
                    value,
                    EncodingError.Context(
                        codingPath: [], debugDescription: "\(type(of: value)) encodes nothing at all"))
        }
        if let trouble = writing.trouble { throw trouble }
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
        return EncodingSlot(self, in: slot, step, call: slot.call)
    }

    /// Takes note that a slot is written to.
    func willWrite(_ slot: EncodingSlot) {
        if slot.call != call { keepsTree = true }
    }

    private static let tooDeep = "the value is nested more than \(maxDepth) levels deep"

    // MARK: Values

    /// What a value writes; nil: nothing.
    func node(
        _ value: some Encodable, in parent: EncodingSlot?, _ step: @autoclosure () -> EncodingSlot.Step
    ) throws -> EncodedContent.Node? {
        if let text = try simple(value, { path(parent, step()) }) { return .text(text) }
        if let parent, parent.depth >= Self.maxDepth {
            throw invalid("", at: path(parent, step()), Self.tooDeep)
        }
        let small = SmallValue(value)
        if let small, let text = texts.text(of: small) {
            let start = bytes.count
            texts.bytes.withUnsafeBufferPointer { bytes.append(contentsOf: UnsafeBufferPointer(rebasing: $0[text])) }
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
        deepest = max(deepest, slot.depth)
        if small == nil, let list = value as? any EncodedList {
            begin(slot.content, .array)
            try list.write(to: slot)
        } else {
            try value.encode(to: StateEncoder(slot: slot))
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
        if let small, pathsRead == pathsBefore { texts.learn(small, range, of: bytes) }
        return .text(range)
    }

    /// What a value writes that must write something; an empty object if it does not.
    func whole(
        _ value: some Encodable, in parent: EncodingSlot, _ step: @autoclosure () -> EncodingSlot.Step
    ) throws -> EncodedContent.Node {
        if let node = try node(value, in: parent, step()) { return node }
        if !keepsTree { return .text(ascii("{}")) }
        // Written later, or never.
        let empty = EncodedContent()
        empty.kind = .object
        return .inner(empty)
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
private protocol EncodedList {
    func write(to slot: EncodingSlot) throws
}

extension Array: EncodedList where Element: Encodable {
    func write(to slot: EncodingSlot) throws {
        let (writing, content) = (slot.writing, slot.content)
        var index = 0
        for element in self {
            try writing.addElement(to: content) { try writing.whole(element, in: slot, .index(index)) }
            index += 1
        }
    }
}
