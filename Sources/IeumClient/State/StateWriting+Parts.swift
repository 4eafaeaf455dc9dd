import Wire

/// The parts of objects and arrays. A container's text is written where it is to stand, as long as its parts come in the order
/// of the text, one after the other; else it is put together when it is complete.
extension StateWriting {
    /// Begins a container.
    func begin(_ content: EncodedContent, _ kind: EncodedContent.Kind) {
        content.kind = kind
        content.start = bytes.count
        bytes.append(kind == .array ? UInt8(ascii: "[") : UInt8(ascii: "{"))
        content.end = bytes.count
    }

    /// Adds an element, or the one value of a content that is no container; `write` writes it.
    func addElement(to content: EncodedContent, _ write: () throws -> EncodedContent.Node) rethrows {
        if content.end != bytes.count {
            content.end = nil
        } else if !content.parts.isEmpty {
            bytes.append(UInt8(ascii: ","))
        }
        let start = bytes.count
        add(try write(), from: start, start, to: content)
    }

    /// Adds elements of an array whose texts are known, up to the first whose text is not, all as one part.
    /// - Returns: the first one that was not added.
    func addKnownElements<Element>(of array: [Element], from first: Int, to slot: EncodingSlot) -> Int {
        guard knowsTexts(of: Element.self) else { return first }
        let content = slot.content
        let hasComma = content.end == bytes.count && !content.parts.isEmpty
        if hasComma { bytes.append(UInt8(ascii: ",")) }
        let start = bytes.count
        let next = appendKnownTexts(of: array, from: first, in: slot)
        guard next > first else {
            if hasComma { bytes.removeLast() }
            return first
        }
        if !hasComma, !content.parts.isEmpty { content.end = nil }
        add(.text(start..<bytes.count), from: start, start, to: content)
        return next
    }

    /// Adds a member, whose value `write` writes.
    func addMember(_ key: String, to content: EncodedContent, _ write: () throws -> EncodedContent.Node) rethrows {
        let start = beginMember(key, of: content)
        let (value, count) = (bytes.count, content.parts.count)
        let node = try write()
        // The value wrote to the object that it is in.
        if content.parts.count != count { content.isAscending = false }
        add(node, from: start, value, to: content)
    }

    /// Adds a member whose value is written elsewhere.
    func addMember(_ key: String, to content: EncodedContent, inner: EncodedContent, isNested: Bool) {
        let start = beginMember(key, of: content)
        add(.inner(inner), from: start, bytes.count, to: content, isNested: isNested)
    }

    /// Writes a key.
    /// - Returns: where it begins.
    private func beginMember(_ key: String, of content: EncodedContent) -> Int {
        if content.end != bytes.count {
            content.end = nil
        } else if !content.parts.isEmpty {
            bytes.append(UInt8(ascii: ","))
        }
        let start = bytes.count
        let isPlain = append(key)
        bytes.append(UInt8(ascii: ":"))
        if !isPlain {
            (content.isPlain, content.isAscending) = (false, false)
        } else if content.isAscending, let last = content.parts.last {
            content.isAscending = order(keyText(of: last), start + 1..<bytes.count - 2) < 0
        }
        return start
    }

    private func add(
        _ node: EncodedContent.Node, from start: Int, _ value: Int, to content: EncodedContent, isNested: Bool = false
    ) {
        switch node {
        case .text(let range) where range == value..<bytes.count:
            content.parts.append(EncodedContent.Part(start: start, value: value, end: range.upperBound))
            if content.end != nil { content.end = content.isAscending ? range.upperBound : nil }
        case .text(let range):
            // It stands elsewhere.
            let inner = EncodedContent()
            inner.kind = .value
            inner.parts = [
                EncodedContent.Part(start: range.lowerBound, value: range.lowerBound, end: range.upperBound)
            ]
            addInner(inner, from: start, value, to: content, isNested: false)
        case .inner(let inner): addInner(inner, from: start, value, to: content, isNested: isNested)
        }
    }

    private func addInner(
        _ inner: EncodedContent, from start: Int, _ value: Int, to content: EncodedContent, isNested: Bool
    ) {
        content.parts.append(
            EncodedContent.Part(
                start: start, value: value, end: value, inner: content.inners.count, isNested: isNested))
        content.inners.append(inner)
        content.end = nil
    }

    // MARK: The order of members

    /// Brings the members into the order of their keys' bytes; of a key that was written twice the last value stays, and of
    /// nested containers the sum.
    func sortMembers(_ content: EncodedContent) {
        let count = content.parts.count
        guard count > 1, !content.isAscending else { return }
        guard content.isPlain else { return sortWideMembers(content) }
        if count <= 16 {
            for index in 1..<count {
                var place = index
                while place > 0, order(of: content.parts[place], content.parts[place - 1]) < 0 {
                    content.parts.swapAt(place, place - 1)
                    place -= 1
                }
            }
        } else {
            // The standard library's sort is stable, and is said to stay so.
            content.parts.sort { order(of: $0, $1) < 0 }
        }
        for index in 1..<count where order(of: content.parts[index - 1], content.parts[index]) == 0 {
            return uniteTwins(content)
        }
    }

    private func sortWideMembers(_ content: EncodedContent) {
        uniteTwins(content)
        let named = content.parts.map { (name: name(of: $0), part: $0) }
        content.parts = named.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }.map(\.part)
    }

    /// The text of a key between its quotes.
    private func keyText(of part: EncodedContent.Part) -> Range<Int> { part.start + 1..<part.value - 2 }

    private func order(of left: EncodedContent.Part, _ right: EncodedContent.Part) -> Int {
        order(keyText(of: left), keyText(of: right))
    }

    /// Negative: the left text comes first; 0: they are the same.
    private func order(_ left: Range<Int>, _ right: Range<Int>) -> Int {
        bytes.withUnsafeBufferPointer { bytes in
            for (left, right) in zip(left, right) where bytes[left] != bytes[right] {
                return Int(bytes[left]) - Int(bytes[right])
            }
            return left.count - right.count
        }
    }

    /// The key as the type gave it.
    private func name(of part: EncodedContent.Part) -> String {
        let text = Array(bytes[keyText(of: part)])
        let name = JSONString.unescape(text.span, allowsNUL: true) ?? []
        return String(decoding: name, as: UTF8.self)
    }

    private func uniteTwins(_ content: EncodedContent) {
        var places: [String: Int] = [:]
        var single: [EncodedContent.Part] = []
        for part in content.parts {
            let name = name(of: part)
            if let place = places[name] {
                single[place] = united(single[place], part, in: content)
            } else {
                places[name] = single.count
                single.append(part)
            }
        }
        content.parts = single
    }

    /// As a dictionary has it: the first spelling of the key, the last value.
    private func united(
        _ first: EncodedContent.Part, _ second: EncodedContent.Part, in content: EncodedContent
    ) -> EncodedContent.Part {
        var part = second
        part.start = bytes.count
        bytes += Array(bytes[first.start..<first.value])
        part.value = bytes.count
        bytes += Array(bytes[second.value..<second.end])
        part.end = bytes.count
        guard first.inner >= 0, second.inner >= 0, second.isNested else { return part }
        let (left, right) = (content.inners[first.inner], content.inners[second.inner])
        guard left.kind == right.kind else { return part }
        let both = EncodedContent()
        both.kind = right.kind
        both.isPlain = left.isPlain && right.isPlain
        both.isAscending = false
        both.inners = left.inners + right.inners
        both.parts = left.parts
        for var moved in right.parts {
            if moved.inner >= 0 { moved.inner += left.inners.count }
            both.parts.append(moved)
        }
        part.inner = content.inners.count
        content.inners.append(both)
        return part
    }

    // MARK: Printing

    /// Puts a content together.
    func print(_ content: EncodedContent, into text: inout [UInt8]) {
        switch content.kind {
        case .nothing: text.append(contentsOf: "{}".utf8)
        case .value:
            // No part: what was to be written threw, and the type went on.
            guard !content.parts.isEmpty else { return text.append(contentsOf: "{}".utf8) }
            print(content.parts[0], of: content, into: &text)
        case .object:
            sortMembers(content)
            text.append(UInt8(ascii: "{"))
            printParts(of: content, into: &text)
            text.append(UInt8(ascii: "}"))
        case .array:
            text.append(UInt8(ascii: "["))
            printParts(of: content, into: &text)
            text.append(UInt8(ascii: "]"))
        }
    }

    private func printParts(of content: EncodedContent, into text: inout [UInt8]) {
        for index in content.parts.indices {
            if index > 0 { text.append(UInt8(ascii: ",")) }
            print(content.parts[index], of: content, into: &text)
        }
    }

    private func print(_ part: EncodedContent.Part, of content: EncodedContent, into text: inout [UInt8]) {
        // A slice would hold the bytes, and be counted.
        bytes.withUnsafeBufferPointer {
            text.append(contentsOf: UnsafeBufferPointer(rebasing: $0[part.start..<part.end]))
        }
        if part.inner >= 0 { print(content.inners[part.inner], into: &text) }
    }
}

extension [UInt8] {
    /// Appends a JSON string as states have them: only what must be is escaped, and of that, what has a short form in it.
    /// - Returns: whether it is of ASCII, and nothing had to be escaped.
    mutating func append(stateText text: String) -> Bool {
        var text = text
        append(UInt8(ascii: "\""))
        let isPlain = text.withUTF8 { utf8 in
            var (plain, isPlain) = (0, true)
            for index in utf8.indices {
                let byte = utf8[index]
                if byte >= 0x80 {
                    isPlain = false
                } else if byte < 0x20 || byte == 0x22 || byte == 0x5C {
                    isPlain = false
                    append(contentsOf: UnsafeBufferPointer(rebasing: utf8[plain..<index]))
                    plain = index + 1
                    append(escaped: byte)
                }
            }
            append(contentsOf: UnsafeBufferPointer(rebasing: utf8[plain...]))
            return isPlain
        }
        append(UInt8(ascii: "\""))
        return isPlain
    }

    private mutating func append(escaped byte: UInt8) {
        append(UInt8(ascii: "\\"))
        switch byte {
        case 0x22, 0x5C: append(byte)
        case 0x08: append(UInt8(ascii: "b"))
        case 0x09: append(UInt8(ascii: "t"))
        case 0x0A: append(UInt8(ascii: "n"))
        case 0x0C: append(UInt8(ascii: "f"))
        case 0x0D: append(UInt8(ascii: "r"))
        default:
            append(contentsOf: [UInt8(ascii: "u"), UInt8(ascii: "0"), UInt8(ascii: "0")])
            append(hexDigit(byte >> 4))
            append(hexDigit(byte & 15))
        }
    }
}
