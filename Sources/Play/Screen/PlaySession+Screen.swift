import Handle
import TerminalText

extension PlaySession {
    /// What the screen shows.
    /// - Parameter hasColours: without them a mark is shown by signs around the letter.
    package func canvas(hasColours: Bool) -> Canvas {
        guard isRoomy else { return narrowCanvas }
        var page = Page(width: size.width, height: size.height, hasColours: hasColours)
        if let clash {
            draw(clash, on: &page)
        } else {
            drawGame(on: &page)
        }
        page.put(connection.line, row: 23, column: 3, style: connection.isTroubled ? .alert : .dim, limit: 76)
        return page.canvas
    }

    /// What a terminal shows that is too small.
    private var narrowCanvas: Canvas {
        var canvas = Canvas(width: size.width, height: size.height)
        let needed = Self.neededSize
        let text = """
            한들 needs \(needed.width) columns and \(needed.height) rows; here are \(size.width) and \(size.height). \
            Make the window larger, or leave with Ctrl-C.
            """
        var (row, column) = (0, 0)
        for word in text.split(separator: " ") {
            let word = String(word)
            if column > 0, column + 1 + word.terminalWidth > size.width { (row, column) = (row + 1, 0) }
            column = canvas.put(column > 0 ? " \(word)" : word, row: row, column: column)
        }
        return canvas
    }

    private func drawGame(on page: inout Page) {
        page.put(heading(of: game), row: 0, column: 3, style: .strong)
        page.drawBoard(game, row: 2, column: 3)
        if !game.isGameFinished, problem == nil {
            page.setCursor(row: 2 + 2 * game.currentRow, column: 4 + 5 * min(game.typed.count, game.jamoCount - 1))
        }
        if let problem {
            page.put(problem, row: 14, column: 3, style: .alert, limit: 76)
        } else if let notice {
            page.put(
                notice.text, row: 14, column: 3, style: notice.isAlert ? .alert : .plain,
                // Beside it stands the result, once there is one.
                limit: game.isGameFinished ? 48 : 76)
        }
        page.drawKeyBoard(game.keyBoard, row: 16, column: 3)
        page.drawLegend(row: 20, column: 3)
        page.put(help, row: 22, column: 3, style: .dim, limit: 76)
        page.drawStatistics(statistics, row: 2, column: 52)
        if game.isGameFinished {
            for (index, line) in game.resultToShare.split(separator: "\n", omittingEmptySubsequences: false)
                .enumerated()
            {
                page.put(String(line), row: 14 + index, column: 52)
            }
        }
    }

    private var help: String {
        guard game.isGameFinished else { return "Enter guesses   Backspace takes back   Ctrl-C leaves" }
        return isDayWaiting
            ? "Enter plays the word of the day   Ctrl-C leaves" : "Enter plays for practice   Ctrl-C leaves"
    }

    private func heading(of game: Game) -> String {
        game.isPractice ? "한들 practice" : "한들 \(game.gameNumber)   \(AnswerWords.date(ofDay: game.gameNumber))"
    }

    private func draw(_ clash: Clash, on page: inout Page) {
        let name = (clash.shown.game ?? clash.other.game).map(heading) ?? "한들"
        page.put("\(name)   two devices have played it", row: 0, column: 3, style: .strong, limit: 76)
        for (side, title, column) in [(clash.shown, "1  shown now", 3), (clash.other, "2  the other", 42)] {
            page.put("\(title): \(side.device), \(side.time)", row: 2, column: column, style: .strong, limit: 36)
            if let game = side.game {
                page.drawBoard(game, row: 4, column: column)
            } else {
                page.put("deleted, or not readable here", row: 4, column: column)
            }
        }
        page.put("Neither had seen the other, so the later one is shown. Both are kept:", row: 17, column: 3)
        page.put("what you do not take stays in the history (ieum history).", row: 18, column: 3)
        page.drawLegend(row: 20, column: 3)
        page.put("1 keeps what is shown   2 takes the other   Ctrl-C leaves", row: 22, column: 3, style: .strong)
    }
}
