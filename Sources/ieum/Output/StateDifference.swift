import IeumClient
import Wire

/// One place in which two states differ.
struct StateDifference {
    /// A step from a value to one inside it.
    enum Step: Equatable {
        case key(String)
        case index(Int)
    }

    /// Where; empty: the whole states.
    var path: [Step]
    /// What stands there in the old state; nil: nothing.
    var old: RawJSON?
    /// What stands there in the new state; nil: nothing.
    var new: RawJSON?

    /// Where two states differ, nested objects and arrays looked into. The order of keys, blanks and the spelling of numbers
    /// make no difference; nil is a deleted game.
    static func all(from old: RawJSON?, to new: RawJSON?) -> [StateDifference] {
        var found: [StateDifference] = []
        collect(old, new, [], &found)
        return found
    }

    private static func collect(_ old: RawJSON?, _ new: RawJSON?, _ path: [Step], _ found: inout [StateDifference]) {
        guard let old, let new else {
            if old != nil || new != nil { found.append(StateDifference(path: path, old: old, new: new)) }
            return
        }
        if old.text == new.text { return }
        if let left = old.members, let right = new.members {
            let (before, after) = (values(left), values(right))
            var seen: Set<[UInt8]> = []
            for key in left.map(\.key) + right.map(\.key) where seen.insert(key).inserted {
                collect(before[key], after[key], path + [.key(String(decoding: key, as: UTF8.self))], &found)
            }
        } else if let left = old.elements, let right = new.elements {
            for index in 0..<max(left.count, right.count) {
                let one = index < left.count ? left[index] : nil
                let other = index < right.count ? right[index] : nil
                collect(one, other, path + [.index(index)], &found)
            }
        } else if !old.isSame(as: new) {
            found.append(StateDifference(path: path, old: old, new: new))
        }
    }

    /// A key that stands twice counts by its last value, as in PostgreSQL.
    private static func values(_ members: [RawJSON.Member]) -> [[UInt8]: RawJSON] {
        Dictionary(members.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    }

    /// `answerBoard[0][1].mark`; of a key that is no plain word `["two words"]`; `(all)` of the whole states.
    var pathText: String {
        guard !path.isEmpty else { return "(all)" }
        var text = ""
        for step in path {
            switch step {
            case .index(let index): text += "[\(index)]"
            case .key(let key):
                if key.unicodeScalars.allSatisfy(\.isWordLike), !key.isEmpty {
                    text += text.isEmpty ? key : ".\(key)"
                } else {
                    text += "[\(String(decoding: JSONText.string(key).line.dropLast(), as: UTF8.self))]"
                }
            }
        }
        return text
    }

    /// What the change is.
    var kind: String { old == nil ? "added" : new == nil ? "removed" : "changed" }

    /// The top-level keys in which two states differ, sorted; nil where one is no object.
    static func topLevelKeys(_ one: [UInt8]?, _ other: [UInt8]?) -> [String]? {
        guard let one = one.flatMap({ try? RawJSON(checking: $0) }),
            let other = other.flatMap({ try? RawJSON(checking: $0) }), one.kind == .object, other.kind == .object
        else { return nil }
        let keys = all(from: one, to: other).compactMap { difference -> String? in
            guard case .key(let key)? = difference.path.first else { return nil }
            return key
        }
        return Set(keys).sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
    }
}

extension Unicode.Scalar {
    fileprivate var isWordLike: Bool {
        properties.isAlphabetic || properties.numericType != nil || self == "_" || self == "-"
    }
}

extension JSONText {
    /// A JSON text with each member and element on a line of its own; what stands between the blanks stays as it is.
    static func indented(_ text: some Collection<UInt8>) -> [UInt8] {
        var lines: [UInt8] = []
        var depth = 0
        var isInString = false
        var isEscaped = false
        var last: UInt8 = 0
        func breakLine() {
            lines.append(UInt8(ascii: "\n"))
            lines += [UInt8](repeating: 0x20, count: 2 * max(0, depth))
        }
        for byte in text {
            if isInString {
                lines.append(byte)
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte
                    == UInt8(ascii: "\"")
                {
                    isInString = false
                }
                last = byte
                continue
            }
            switch byte {
            case 0x20, 0x09, 0x0A, 0x0D: continue
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                if last == UInt8(ascii: "{") || last == UInt8(ascii: "[") { breakLine() }
                lines.append(byte)
                depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if last != UInt8(ascii: "{"), last != UInt8(ascii: "[") { breakLine() }
                lines.append(byte)
            case UInt8(ascii: ","):
                lines.append(byte)
                breakLine()
            case UInt8(ascii: ":"): lines += [byte, 0x20]
            default:
                if last == UInt8(ascii: "{") || last == UInt8(ascii: "[") { breakLine() }
                lines.append(byte)
                isInString = byte == UInt8(ascii: "\"")
            }
            last = byte
        }
        return lines
    }
}
