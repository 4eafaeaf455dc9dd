/// How a piece of text looks on a terminal that shows styles.
enum Style: String {
    case bold = "1"
    case faint = "2"
    case red = "31"
    case green = "32"
}

/// Text in one style, or in none.
struct StyledText: Equatable {
    var text: String
    var style: Style?

    init(_ text: String, _ style: Style? = nil) {
        self.text = text
        self.style = style
    }
}

extension StyledText: ExpressibleByStringInterpolation {
    init(stringLiteral text: String) { self.init(text) }
}

extension Output {
    /// Writes a line to stdout, at once, in its styles where stdout shows some. Nothing in the texts steers a terminal.
    func line(_ parts: [StyledText]) throws(Broken) {
        var bytes: [UInt8] = []
        for part in parts {
            if let style = part.style, isStyled {
                bytes += Array("\u{1B}[\(style.rawValue)m\(part.text.terminalSafe)\u{1B}[0m".utf8)
            } else {
                bytes += Array(part.text.terminalSafe.utf8)
            }
        }
        try data(bytes + [UInt8(ascii: "\n")])
    }

    /// Writes a table, no wider than the terminal where stdout is one.
    func table(_ table: Table) throws(Broken) {
        for line in table.styledLines(width: width) { try self.line(line) }
    }
}
