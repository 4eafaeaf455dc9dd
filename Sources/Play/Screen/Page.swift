import Handle
import TerminalText

/// The 80 columns and 24 rows that the game draws, in the middle of a screen that may be larger.
struct Page {
    private(set) var canvas: Canvas
    private let top: Int
    private let left: Int
    private let hasColours: Bool

    init(width: Int, height: Int, hasColours: Bool) {
        canvas = Canvas(width: width, height: height)
        top = max(0, (height - PlaySession.neededSize.height) / 2)
        left = max(0, (width - PlaySession.neededSize.width) / 2)
        self.hasColours = hasColours
    }

    @discardableResult
    mutating func put(_ text: String, row: Int, column: Int, style: Style = .plain, limit: Int = .max) -> Int {
        canvas.put(text, row: top + row, column: left + column, style: style, limit: limit) - left
    }

    mutating func setCursor(row: Int, column: Int) {
        canvas.cursor = Canvas.Place(row: top + row, column: left + column)
    }

    /// A tile, four columns wide: a letter of two with what stands for its mark where there are no colours.
    @discardableResult
    private mutating func putTile(_ key: Key, row: Int, column: Int) -> Int {
        guard let letter = key.jamo?.rawValue else {
            return put(" __ ", row: row, column: column, style: .dim)
        }
        let (before, after) =
            switch key.mark {
            case _ where hasColours: (" ", " ")
            case .unmarked: (" ", " ")
            case .absent: ("-", "-")
            case .wrongPlace: ("(", ")")
            case .rightPlace: ("[", "]")
            }
        return put(before + letter + after, row: row, column: column, style: Style(key.mark))
    }

    /// A board: a row every other line, 24 columns of tiles, and behind them the word in syllables.
    mutating func drawBoard(_ game: Game, row: Int, column: Int) {
        for (index, keys) in game.answerBoard.prefix(Game.rowCount).enumerated() {
            for (place, key) in keys.prefix(5).enumerated() {
                putTile(key, row: row + 2 * index, column: column + 5 * place)
            }
            let isTyped = index == game.currentRow && !game.isGameFinished
            let letters = isTyped ? game.typed : index < game.currentRow ? keys.compactMap(\.jamo) : []
            put(Hangul.composed(letters), row: row + 2 * index, column: column + 26, limit: 11)
        }
    }

    /// The keyboard, three lines of keys as they lie on it.
    mutating func drawKeyBoard(_ keyBoard: KeyBoard, row: Int, column: Int) {
        for (index, keys) in keyBoard.rows.prefix(3).enumerated() {
            for (place, key) in keys.prefix(9).enumerated() {
                putTile(key, row: row + index, column: column + index + 5 * place)
            }
        }
    }

    /// What the marks mean.
    mutating func drawLegend(row: Int, column: Int) {
        var column = column
        for (mark, meaning) in [(Mark.rightPlace, "right place"), (.wrongPlace, "wrong place"), (.absent, "absent")] {
            column = putTile(Key(.hieut, mark: mark), row: row, column: column)
            column = put(" \(meaning)  ", row: row, column: column)
        }
    }

    /// Played, won, streaks, and a bar for each number of guesses.
    mutating func drawStatistics(_ statistics: Statistics, row: Int, column: Int) {
        put("Statistics", row: row, column: column, style: .strong)
        put(
            "played \(statistics.played)   won \(statistics.won) (\(statistics.winPercent) %)", row: row + 1,
            column: column)
        put(
            "streak \(statistics.currentStreak)   longest \(statistics.longestStreak)", row: row + 2, column: column)
        let most = max(1, statistics.wonWith.max() ?? 1)
        for (index, count) in statistics.wonWith.enumerated() {
            let length = count == 0 ? 0 : max(1, count * 18 / most)
            let bar = String(repeating: hasColours ? " " : "#", count: length)
            put("\(index + 1)", row: row + 4 + index, column: column)
            let end = put(bar, row: row + 4 + index, column: column + 2, style: .rightPlace)
            put(count == 0 ? "" : "\(count)", row: row + 4 + index, column: length == 0 ? end : end + 1)
        }
    }
}
