import Wire

/// A JSON value as it stands in a text: nothing of it is converted before it is asked for, so numbers of any size, the
/// order of keys and what nobody knows come out as they went in.
///
/// Made only from text that ``Wire/JSONCheck`` has passed, so it nests at most ``Wire/Limits/maxStateDepth`` deep.
package struct RawJSON: Hashable, Sendable {
    /// What a value is.
    package enum Kind: String, Hashable, Sendable {
        case object, array, string, number, bool, null
    }

    /// A key of an object, its escapes undone, and its value.
    package struct Member: Hashable, Sendable {
        /// The key's bytes: two keys are the same when their bytes are, whatever Unicode says.
        package var key: [UInt8]
        /// What it holds.
        package var value: RawJSON
    }

    /// The text, without white space around it.
    package let text: ArraySlice<UInt8>

    /// Takes a whole text.
    /// - Throws: ``StoreError`` `invalidState` with the place of the first offence.
    package init(checking text: [UInt8]) throws(StoreError) {
        guard String(validating: text, as: UTF8.self) != nil else {
            throw StoreError(.invalidState, "the state is not UTF-8")
        }
        do throws(JSONCheck.Failure) {
            try JSONCheck.check(text.span)
        } catch {
            throw StoreError(.invalidState, "\(error.reason.message), at byte \(error.offset)")
        }
        self.init(trusted: text[...])
    }

    /// Takes text that is known to be one JSON value.
    init(trusted text: ArraySlice<UInt8>) {
        var text = text
        while let first = text.first, first.isJSONBlank { text = text.dropFirst() }
        while let last = text.last, last.isJSONBlank { text = text.dropLast() }
        self.text = text
    }

    /// What the value is.
    package var kind: Kind {
        switch text.first {
        case UInt8(ascii: "{"): .object
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "\""): .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): .bool
        case UInt8(ascii: "n"), nil: .null
        default: .number
        }
    }

    /// The members of an object, in their order, a repeated key as often as it stands there; nil of anything else.
    package var members: [Member]? {
        guard kind == .object else { return nil }
        var members: [Member] = []
        var scanner = Scanner(text.dropFirst())
        while let quoted = scanner.string() {
            guard let value = scanner.value(after: UInt8(ascii: ":")) else { break }
            members.append(Member(key: Self.unescaped(quoted), value: RawJSON(trusted: value)))
        }
        return members
    }

    /// The elements of an array; nil of anything else.
    package var elements: [RawJSON]? {
        guard kind == .array else { return nil }
        var elements: [RawJSON] = []
        var scanner = Scanner(text.dropFirst())
        while let value = scanner.value() { elements.append(RawJSON(trusted: value)) }
        return elements
    }

    /// A string's characters; nil of anything else.
    package var string: String? {
        guard kind == .string else { return nil }
        return String(decoding: Self.unescaped(text), as: UTF8.self)
    }

    /// A number's text; nil of anything else.
    package var number: String? {
        guard kind == .number else { return nil }
        return String(decoding: text, as: UTF8.self)
    }

    /// A truth value; nil of anything else.
    package var bool: Bool? {
        guard kind == .bool else { return nil }
        return text.first == UInt8(ascii: "t")
    }

    /// The value of an object's key, the last one if there are several, as PostgreSQL has it.
    package subscript(key: String) -> RawJSON? {
        members?.last { $0.key.elementsEqual(key.utf8) }?.value
    }

    /// The text of an object with these members.
    package static func object(_ members: [Member]) -> [UInt8] {
        var bytes: [UInt8] = [UInt8(ascii: "{")]
        for member in members {
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(quoted: String(decoding: member.key, as: UTF8.self))
            bytes.append(UInt8(ascii: ":"))
            bytes.append(contentsOf: member.value.text)
        }
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    /// The text of an array of these elements.
    package static func array(_ elements: [RawJSON]) -> [UInt8] {
        var bytes: [UInt8] = [UInt8(ascii: "[")]
        for element in elements {
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(contentsOf: element.text)
        }
        bytes.append(UInt8(ascii: "]"))
        return bytes
    }

    /// What stands between a string's quotes, its escapes undone.
    static func unescaped(_ quoted: ArraySlice<UInt8>) -> [UInt8] {
        let inner = quoted.dropFirst().dropLast()
        guard inner.contains(UInt8(ascii: "\\")) else { return Array(inner) }
        return JSONString.unescape(Array(inner).span) ?? Array(inner)
    }
}

/// Steps through the inside of an array or object that was checked before.
private struct Scanner {
    private let text: ArraySlice<UInt8>
    private var index: Int

    init(_ text: ArraySlice<UInt8>) {
        self.text = text
        index = text.startIndex
    }

    /// The next string, with its quotes.
    mutating func string() -> ArraySlice<UInt8>? {
        skipSeparators()
        guard index < text.endIndex, text[index] == UInt8(ascii: "\"") else { return nil }
        let start = index
        skipString()
        return text[start..<index]
    }

    /// The next value; nil at the end.
    mutating func value(after separator: UInt8? = nil) -> ArraySlice<UInt8>? {
        skipSeparators()
        if let separator {
            guard index < text.endIndex, text[index] == separator else { return nil }
            index += 1
            skipSeparators()
        }
        let start = index
        var depth = 0
        while index < text.endIndex {
            switch text[index] {
            case UInt8(ascii: "\""):
                skipString()
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return start < index ? text[start..<index] : nil }
                depth -= 1
            case UInt8(ascii: ",") where depth == 0: return text[start..<index]
            default: break
            }
            index += 1
        }
        return nil
    }

    private mutating func skipSeparators() {
        while index < text.endIndex, text[index].isJSONBlank || text[index] == UInt8(ascii: ",") { index += 1 }
    }

    private mutating func skipString() {
        index += 1
        while index < text.endIndex, text[index] != UInt8(ascii: "\"") {
            index += text[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        index = min(index + 1, text.endIndex)
    }
}

extension UInt8 {
    fileprivate var isJSONBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D }
}
