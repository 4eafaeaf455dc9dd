/// A line of a transcript with its places for what differs from run to run. Source: Documentation/protocol.md, "How to
/// read the transcripts".
public struct LinePattern: Sendable {
    private enum Part: Sendable {
        case text(Substring)
        /// `<name>`: a run of characters other than a blank.
        case name(String)
        /// `<*>`: at least one character of any kind.
        case anything
    }

    private let parts: [Part]

    /// Reads a pattern.
    public init(_ line: String) {
        var parts: [Part] = []
        var rest = line[...]
        while let open = rest.firstIndex(of: "<") {
            let inside = rest[rest.index(after: open)...]
            guard let close = inside.firstIndex(of: ">"), let part = Self.place(inside[..<close]) else {
                // No place: the bracket is text.
                parts.append(.text(rest[...open]))
                rest = inside
                continue
            }
            if open > rest.startIndex { parts.append(.text(rest[..<open])) }
            parts.append(part)
            rest = inside[inside.index(after: close)...]
        }
        if !rest.isEmpty { parts.append(.text(rest)) }
        self.parts = parts
    }

    private static func place(_ word: Substring) -> Part? {
        if word == "*" { return .anything }
        guard let first = word.first, ("a"..."z").contains(first),
            word.allSatisfy({ ("a"..."z").contains($0) || ("0"..."9").contains($0) || $0 == "-" })
        else { return nil }
        return .name(String(word))
    }

    /// The line with every name in the place of which a value is known; the other names stay as they are.
    public func filled(with values: [String: String]) -> String {
        parts.reduce(into: "") { line, part in
            switch part {
            case .text(let text): line += text
            case .name(let name): line += values[name] ?? "<\(name)>"
            case .anything: line += "<*>"
            }
        }
    }

    /// The values of all names after the line, or nil if the line is another one. A new name takes the shortest run
    /// that lets the line match.
    public func match(_ line: String, _ values: [String: String]) -> [String: String]? {
        Self.match(parts[...], line[...], values)
    }

    private static func match(
        _ parts: ArraySlice<Part>, _ line: Substring, _ values: [String: String]
    ) -> [String: String]? {
        guard let part = parts.first else { return line.isEmpty ? values : nil }
        let others = parts.dropFirst()
        switch part {
        case .text(let text):
            return line.utf8.starts(with: text.utf8) ? match(others, line.after(text), values) : nil
        case .name(let name):
            if let value = values[name] {
                return line.utf8.starts(with: value.utf8) ? match(others, line.after(value), values) : nil
            }
            return shortest(line.prefix { $0 != " " }) { run in
                var values = values
                values[name] = String(run)
                return match(others, line[run.endIndex...], values)
            }
        case .anything:
            return shortest(line) { match(others, line[$0.endIndex...], values) }
        }
    }

    private static func shortest<Value>(_ run: Substring, _ attempt: (Substring) -> Value?) -> Value? {
        var end = run.startIndex
        while end < run.endIndex {
            end = run.index(after: end)
            if let found = attempt(run[..<end]) { return found }
        }
        return nil
    }
}

extension Substring {
    /// What follows a start, byte for byte.
    fileprivate func after(_ start: some StringProtocol) -> Substring {
        Substring(utf8.dropFirst(start.utf8.count))
    }
}
