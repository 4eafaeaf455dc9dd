import TerminalText

/// A screen that is drawn on: rows of cells, where a wide character takes two.
///
/// Only ASCII, Hangul and the tiles are drawn by the game. Their widths are the same everywhere, unlike those of lines and
/// bullets, which terminals in East Asia draw wide.
package struct Canvas: Hashable, Sendable {
    /// One column.
    struct Cell: Hashable, Sendable {
        /// A character; empty behind a wide one.
        var text: String
        var style: Style
    }

    /// Columns.
    package let width: Int
    /// Rows.
    package let height: Int
    /// Where the cursor stands, and an input method shows what it composes; nil: hidden.
    package var cursor: Place?
    private(set) var rows: [[Cell]]

    /// A place on the screen, both from 0.
    package struct Place: Hashable, Sendable {
        package var row: Int
        package var column: Int
    }

    /// An empty screen.
    package init(width: Int, height: Int) {
        (self.width, self.height) = (max(0, width), max(0, height))
        rows = Array(
            repeating: Array(repeating: Cell(text: " ", style: .plain), count: self.width), count: self.height)
    }

    /// Draws a text; what does not fit in is left out.
    /// - Parameter limit: columns that it may take at most.
    /// - Returns: the column behind it.
    @discardableResult
    package mutating func put(
        _ text: String, row: Int, column: Int, style: Style = .plain, limit: Int = .max
    ) -> Int {
        guard rows.indices.contains(row), column >= 0 else { return column }
        let end = min(width, limit < width - column ? column + limit : width)
        var column = column
        for character in text {
            let columns = character.terminalWidth
            guard column + columns <= end else { break }
            guard columns > 0 else { continue }
            rows[row][column] = Cell(text: String(character), style: style)
            if columns == 2 { rows[row][column + 1] = Cell(text: "", style: style) }
            column += columns
        }
        return column
    }

    /// The rows without styles, and without blanks at their ends.
    package var lines: [String] {
        rows.map { row in
            var line = row.map(\.text).joined()[...]
            while line.last == " " { line = line.dropLast() }
            return String(line)
        }
    }
}
