import TerminalText

/// Columns for people, aligned also when wide characters stand in them.
struct Table {
    /// A column's head, and on which side its cells begin.
    struct Column {
        var title: String
        var isRight: Bool

        /// A column of words.
        static func left(_ title: String) -> Column { Column(title: title, isRight: false) }
        /// A column of numbers.
        static func right(_ title: String) -> Column { Column(title: title, isRight: true) }
    }

    private let columns: [Column]
    private var rows: [[String]] = []

    /// An empty table.
    init(_ columns: [Column]) {
        self.columns = columns
    }

    /// Adds a row; its texts are made safe to show.
    mutating func add(_ cells: [String]) {
        rows.append(cells.map(\.terminalSafe))
    }

    /// The lines, the head first, without blanks at their ends.
    var lines: [String] {
        let all = [columns.map(\.title)] + rows
        let widths = columns.indices.map { column in
            all.map { column < $0.count ? $0[column].terminalWidth : 0 }.max() ?? 0
        }
        return all.map { row in
            let cells = zip(row, zip(columns, widths)).map { cell, shape in
                cell.padded(to: shape.1, alignedRight: shape.0.isRight)
            }
            let line = cells.joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed())
        }
    }
}
