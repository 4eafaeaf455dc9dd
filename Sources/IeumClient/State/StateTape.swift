import Wire

/// A JSON text taken apart in one pass, without recursion: one entry for each value, an object's keys among them, in the order
/// of the text. Nothing is converted before it is asked for.
final class StateTape {
    struct Entry {
        var kind: RawJSON.Kind
        /// Where the value's text begins and ends, quotes included.
        var start: Int
        var end: Int
        /// The entry behind this value and all that is in it.
        var next: Int
        /// Of an array its elements, of an object its members.
        var count = 0
        /// Whether a string has escapes in it.
        var isEscaped = false
    }

    let bytes: [UInt8]
    let entries: [Entry]

    /// - Returns: nil when the text is not one JSON value. ``Wire/JSONCheck`` says where; what it passes is taken here.
    init?(_ bytes: [UInt8]) {
        var filling = TapeFilling(bytes: bytes)
        guard filling.fill() else { return nil }
        self.bytes = bytes
        entries = filling.entries
    }

    // MARK: Reading

    /// The characters of a string, a key or a number.
    func text(_ entry: Entry) -> String? {
        guard entry.kind == .string else { return String(validating: bytes[entry.start..<entry.end], as: UTF8.self) }
        let inner = bytes[(entry.start + 1)..<(entry.end - 1)]
        guard entry.isEscaped else { return String(validating: inner, as: UTF8.self) }
        return JSONString.unescape(Array(inner).span).flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// Whether a string has these bytes for characters.
    func holds(_ entry: Entry, _ utf8: UnsafeBufferPointer<UInt8>) -> Bool {
        guard !entry.isEscaped, entry.end - entry.start - 2 == utf8.count else { return false }
        return bytes.withUnsafeBufferPointer { bytes in
            for index in utf8.indices where bytes[entry.start + 1 + index] != utf8[index] { return false }
            return true
        }
    }

    /// The entries of an object's members, of a key and its value each, or of an array's elements.
    func children(of index: Int) -> (first: Int, end: Int) { (index + 1, entries[index].next) }

}

/// Takes a text apart.
private struct TapeFilling {
    typealias Entry = StateTape.Entry

    let bytes: [UInt8]
    var entries: [Entry] = []

    mutating func fill() -> Bool {
        entries.reserveCapacity(bytes.count / 8 + 4)
        var open: [Int] = []
        var index = 0
        while true {
            skipBlanks(&index)
            guard index < bytes.count else { return false }
            if let parent = open.last, entries[parent].kind == .object {
                guard bytes[index] == UInt8(ascii: "\""), addString(&index) else { return false }
                skipBlanks(&index)
                guard index < bytes.count, bytes[index] == UInt8(ascii: ":") else { return false }
                index += 1
                skipBlanks(&index)
                guard index < bytes.count else { return false }
            }
            if let parent = open.last { entries[parent].count += 1 }
            switch bytes[index] {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                guard open.count < Limits.maxStateDepth else { return false }
                let isObject = bytes[index] == UInt8(ascii: "{")
                entries.append(Entry(kind: isObject ? .object : .array, start: index, end: index, next: 0))
                index += 1
                skipBlanks(&index)
                guard index < bytes.count else { return false }
                open.append(entries.count - 1)
                guard bytes[index] == UInt8(ascii: isObject ? "}" : "]") else { continue }
            case UInt8(ascii: "\""): guard addString(&index) else { return false }
            case UInt8(ascii: "t"): guard addWord("true", .bool, &index) else { return false }
            case UInt8(ascii: "f"): guard addWord("false", .bool, &index) else { return false }
            case UInt8(ascii: "n"): guard addWord("null", .null, &index) else { return false }
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): addNumber(&index)
            default: return false
            }
            guard let hasMore = close(&open, &index) else { return false }
            guard hasMore else { return index == bytes.count }
        }
    }

    /// Goes on behind a value: closes what ends there.
    /// - Returns: whether another value follows; nil: neither.
    private mutating func close(_ open: inout [Int], _ index: inout Int) -> Bool? {
        while let parent = open.last {
            skipBlanks(&index)
            guard index < bytes.count else { return nil }
            if bytes[index] == UInt8(ascii: ",") {
                index += 1
                return true
            }
            guard bytes[index] == UInt8(ascii: entries[parent].kind == .object ? "}" : "]") else { return nil }
            index += 1
            entries[parent].end = index
            entries[parent].next = entries.count
            open.removeLast()
        }
        skipBlanks(&index)
        return false
    }

    private mutating func addString(_ index: inout Int) -> Bool {
        let start = index
        var isEscaped = false
        index += 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            if bytes[index] == UInt8(ascii: "\\") {
                isEscaped = true
                index += 1
            }
            index += 1
        }
        guard index < bytes.count else { return false }
        index += 1
        add(Entry(kind: .string, start: start, end: index, next: entries.count + 1, isEscaped: isEscaped))
        return true
    }

    private mutating func addNumber(_ index: inout Int) {
        let start = index
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
                UInt8(ascii: "e"), UInt8(ascii: "E"):
                index += 1
                continue
            default: break
            }
            break
        }
        add(Entry(kind: .number, start: start, end: index, next: entries.count + 1))
    }

    private mutating func addWord(_ word: StaticString, _ kind: RawJSON.Kind, _ index: inout Int) -> Bool {
        let start = index
        index += word.utf8CodeUnitCount
        guard index <= bytes.count,
            word.withUTF8Buffer({ $0.elementsEqual(bytes[start..<index]) })
        else { return false }
        add(Entry(kind: kind, start: start, end: index, next: entries.count + 1))
        return true
    }

    private mutating func add(_ entry: Entry) { entries.append(entry) }

    private func skipBlanks(_ index: inout Int) {
        while index < bytes.count {
            switch bytes[index] {
            case 0x20, 0x09, 0x0A, 0x0D: index += 1
            default: return
            }
        }
    }
}
