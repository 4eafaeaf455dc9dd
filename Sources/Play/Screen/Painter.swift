/// Turns canvases into what a terminal is sent, and remembers what it shows, so that only rows that differ go out.
package struct Painter: Sendable {
    /// What the terminal can do.
    package enum Ability: Hashable, Sendable {
        /// Neither colours nor a cursor that goes anywhere, as `TERM=dumb` says: lines come one under the other.
        case linesOnly
        /// The cursor goes where it is told.
        case plain
        /// Colours, too.
        case colours
    }

    private let ability: Ability
    private var shown: [String] = []
    private var shownSize: (Int, Int)?
    private var shownLines: [String] = []

    /// Begins with a terminal that shows nothing.
    package init(_ ability: Ability) {
        self.ability = ability
    }

    /// Whether marks are shown by colours.
    package var hasColours: Bool { ability == .colours }

    /// Forgets what the terminal shows: the next canvas is painted as a whole.
    package mutating func forget() {
        shown = []
        shownSize = nil
        shownLines = []
    }

    /// What to send so that the terminal shows a canvas.
    package mutating func paint(_ canvas: Canvas) -> String {
        if ability == .linesOnly { return printLines(canvas) }
        var output = ""
        let rows = canvas.rows.map(line)
        let isWhole = shownSize.map { $0 != (canvas.width, canvas.height) } ?? true
        if isWhole { output += "\u{1B}[0m\u{1B}[2J" }
        for (index, row) in rows.enumerated() where isWhole || shown[index] != row {
            // The rows of a whole painting are blank already.
            if isWhole, row.isEmpty { continue }
            output += "\u{1B}[\(index + 1);1H\(row)"
            if !isWhole { output += "\u{1B}[K" }
        }
        shown = rows
        shownSize = (canvas.width, canvas.height)
        if !output.isEmpty { output = "\u{1B}[?25l" + output }
        if let cursor = canvas.cursor {
            output += "\u{1B}[\(cursor.row + 1);\(cursor.column + 1)H\u{1B}[?25h"
        } else {
            output += "\u{1B}[?25l"
        }
        return output
    }

    /// A row with its styles, without what is blank at its end.
    private func line(_ cells: [Canvas.Cell]) -> String {
        var output = ""
        var style = Style.plain
        let end = cells.lastIndex { $0.text != " " || ($0.style != .plain && ability == .colours) } ?? -1
        for cell in cells.prefix(end + 1) {
            if ability == .colours, cell.style != style {
                style = cell.style
                output += "\u{1B}[0\(style.parameters)m"
            }
            output += cell.text
        }
        if style != .plain { output += "\u{1B}[0m" }
        return output
    }

    /// The lines that differ from those that were printed last.
    private mutating func printLines(_ canvas: Canvas) -> String {
        let lines = canvas.lines
        let known = shownLines
        shownLines = lines
        return lines.enumerated()
            .filter { index, line in !line.isEmpty && (index >= known.count || known[index] != line) }
            .map { $1 + "\r\n" }.joined()
    }
}
