import TerminalText

/// Columns for people, aligned also when wide characters stand in them.
struct Table {
    /// A column's head, and on which side its cells begin.
    struct Column {
        var title: String
        var isRight: Bool

        /// A column of words. It gives way where the table is too wide.
        static func left(_ title: String) -> Column { Column(title: title, isRight: false) }
        /// A column of numbers.
        static func right(_ title: String) -> Column { Column(title: title, isRight: true) }
    }

    /// No column of words gets narrower than this to make room.
    private static let leastWidth = 6
    private static let gap = "  "

    private let columns: [Column]
    private var rows: [[StyledText]] = []

    /// An empty table.
    init(_ columns: [Column]) {
        self.columns = columns
    }

    /// Adds a row; its texts are made safe to show.
    mutating func add(_ cells: [String]) {
        add(cells.map { StyledText($0) })
    }

    /// Adds a row; its texts are made safe to show.
    mutating func add(_ cells: [StyledText]) {
        rows.append(cells.map { StyledText($0.text.terminalSafe, $0.style) })
    }

    /// The lines, the head first, without blanks at their ends.
    var lines: [String] { styledLines(width: nil).map { $0.map(\.text).joined() } }

    /// The lines, none wider than that: columns of words are cut, the widest first, then the lines' ends.
    func styledLines(width limit: Int?) -> [[StyledText]] {
        let hasHead = columns.contains { !$0.title.isEmpty }
        let all = (hasHead ? [columns.map { StyledText($0.title, .bold) }] : []) + rows
        let widths = shrunk(
            columns.indices.map { column in
                all.map { column < $0.count ? $0[column].text.terminalWidth : 0 }.max() ?? 0
            }, to: limit)
        return all.map { row in
            var line: [StyledText] = []
            var room = limit ?? .max
            for (index, cell) in zip(columns.indices, row) {
                let text = cell.text.cut(to: min(widths[index], room))
                let isLast = row[(index + 1)...].allSatisfy { $0.text.isEmpty }
                let space = String(repeating: " ", count: max(0, min(widths[index], room) - text.terminalWidth))
                if columns[index].isRight, !space.isEmpty { line.append(StyledText(space)) }
                line.append(StyledText(text, cell.style))
                if isLast { break }
                if !columns[index].isRight { line.append(StyledText(space)) }
                line.append(StyledText(Self.gap))
                room -= min(room, widths[index] + Self.gap.count)
                if room == 0 { break }
            }
            return Self.withoutBlanksAtEnd(line)
        }
    }

    private func shrunk(_ widths: [Int], to limit: Int?) -> [Int] {
        guard let limit else { return widths }
        var widths = widths
        var excess = widths.reduce(Self.gap.count * max(0, widths.count - 1), +) - limit
        while excess > 0 {
            let words = columns.indices.filter { !columns[$0].isRight && widths[$0] > Self.leastWidth }
            guard let widest = words.max(by: { widths[$0] < widths[$1] }) else { break }
            widths[widest] -= 1
            excess -= 1
        }
        return widths
    }

    private static func withoutBlanksAtEnd(_ line: [StyledText]) -> [StyledText] {
        var line = line
        while let last = line.last {
            let text = String(last.text.reversed().drop { $0 == " " }.reversed())
            guard text.isEmpty else {
                line[line.count - 1].text = text
                break
            }
            line.removeLast()
        }
        return line
    }
}
