/// A place in a file: line and column from 1, the column counted in Unicode scalars, as PostgreSQL counts positions.
public struct SourceLocation: Hashable, Sendable {
    /// The line, from 1. LF, CR LF and a lone CR each end one.
    public var line: Int
    /// The column, from 1.
    public var column: Int
    /// The whole line, without its end.
    public var text: String

    /// A place that is already known.
    public init(line: Int, column: Int, text: String) {
        self.line = line
        self.column = column
        self.text = text
    }

    /// The place of the byte at `offset` of a text in UTF-8; an offset past the end means the end.
    public init(of offset: Int, in bytes: [UInt8]) {
        let target = min(max(offset, 0), bytes.count)
        var (line, start, index) = (1, 0, 0)
        while index < target {
            let byte = bytes[index]
            index += 1
            guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else { continue }
            if byte == UInt8(ascii: "\r"), index < bytes.count, bytes[index] == UInt8(ascii: "\n") {
                if index == target { break }
                index += 1
            }
            line += 1
            start = index
        }
        let end = bytes[start...].firstIndex { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") } ?? bytes.count
        self.init(
            line: line,
            column: 1 + bytes[start..<target].count { $0 & 0xC0 != 0x80 },
            text: String(decoding: bytes[start..<max(end, start)], as: UTF8.self))
    }

    /// The byte offset of the scalar number `position` (from 1) of the text that begins at `start`; the end when there are fewer.
    static func offset(ofScalar position: Int, from start: Int, in bytes: [UInt8]) -> Int {
        var remaining = position
        for index in start..<bytes.count where bytes[index] & 0xC0 != 0x80 {
            remaining -= 1
            if remaining <= 0 { return index }
        }
        return bytes.count
    }

    /// The line as shown under a message, with a caret below the column. A long line is cut to its part around the column.
    var excerpt: [String] {
        let scalars = Array(text.unicodeScalars)
        let width = 110
        let from = column > width - 20 ? min(column - 40, scalars.count) : 0
        let shown = scalars[max(from, 0)...].prefix(width)
        var line = ""
        line.unicodeScalars.append(contentsOf: shown)
        // Tabs are kept, so that the caret stands right whatever a tab's width is.
        let before = String(shown.prefix(max(column - 1 - max(from, 0), 0)).map { $0 == "\t" ? "\t" : " " })
        return ["    " + line, "    " + before + "^"]
    }
}
