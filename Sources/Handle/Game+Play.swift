import Foundation

/// Every move that changes the game sets its ``timestamp``, so that the game played last is known by it.
extension Game {
    /// What became of a row that was to be submitted.
    public enum Submission: Equatable, Sendable {
        /// The row was marked and the game goes on in the next one.
        case marked([Mark])
        /// The row was the answer.
        case won([Mark])
        /// The row was marked, was not the answer and was the last.
        case lost([Mark])
        /// Letters are missing at the row's end; nothing was changed.
        case incomplete(missing: Int)
        /// The caller does not take the row's letters for a word; nothing was changed.
        case notAWord
        /// The game was over; nothing was changed.
        case finished
        /// The board or the answer is not one that can be played, as when a state was damaged; nothing was changed.
        case unplayable
    }

    /// Types a letter into the current row.
    /// - Returns: Whether it was taken: not into a full row, and not after the end.
    @discardableResult
    public mutating func type(_ letter: Jamo, at now: Date = Date()) -> Bool {
        guard !isGameFinished, isPlayable, currentColumn < jamoCount else { return false }
        answerBoard[currentRow][currentColumn] = Key(letter)
        currentColumn += 1
        timestamp = now
        return true
    }

    /// Types a text of syllables or letters, as far as the row has room.
    /// - Returns: How many letters were taken.
    /// - Throws: ``NotHangul``, before anything is typed.
    @discardableResult
    public mutating func type(_ text: String, at now: Date = Date()) throws(NotHangul) -> Int {
        var taken = 0
        for letter in try Hangul.letters(of: text) where type(letter, at: now) { taken += 1 }
        return taken
    }

    /// Takes back the last letter of the current row.
    /// - Returns: Whether there was one.
    @discardableResult
    public mutating func deleteLast(at now: Date = Date()) -> Bool {
        guard !isGameFinished, isPlayable, currentColumn > 0 else { return false }
        currentColumn -= 1
        answerBoard[currentRow][currentColumn] = Key()
        timestamp = now
        return true
    }

    /// Submits the current row: marks it, teaches the keyboard, and ends the game or goes to the next row.
    /// - Parameters:
    ///   - isWord: Whether letters may be guessed; without it any may.
    ///   - now: The game's new ``timestamp``.
    public mutating func submit(
        accepting isWord: ([Jamo]) -> Bool = { _ in true }, at now: Date = Date()
    ) -> Submission {
        guard !isGameFinished else { return .finished }
        guard isPlayable, let letters = try? Hangul.letters(of: answer), letters.count == jamoCount else {
            return .unplayable
        }
        let guess = typed
        guard guess.count == jamoCount else { return .incomplete(missing: jamoCount - guess.count) }
        guard isWord(guess) else { return .notAWord }

        let marks = Mark.marks(of: guess, against: letters)
        answerBoard[currentRow] = zip(guess, marks).map { Key($0, mark: $1) }
        keyBoard.learn(answerBoard[currentRow])
        currentRow += 1
        currentColumn = 0
        timestamp = now
        if guess == letters {
            finish(won: true)
            return .won(marks)
        }
        if currentRow >= answerBoard.count {
            finish(won: false)
            return .lost(marks)
        }
        return .marked(marks)
    }

    /// The letters that were typed into the current row so far.
    public var typed: [Jamo] {
        guard isPlayable else { return [] }
        return answerBoard[currentRow][..<currentColumn].compactMap(\.jamo)
    }

    /// The rows that were submitted.
    public var guesses: ArraySlice<[Key]> { answerBoard.prefix(max(0, currentRow)) }

    /// The submitted rows as lines of 🟩, 🟨 and ⬛, without a letter: what players show each other.
    public var result: String {
        guesses.map { row in row.map(\.mark.tile).joined() }.joined(separator: "\n")
    }

    /// The result under a heading: `한들 273 5/6`, or `한들 273 X/6` for a lost game, an empty line, and ``result``. A game for
    /// practice has no number.
    public var resultToShare: String {
        let score = isGameFinished && !didPlayerWin ? "X" : String(guesses.count)
        return "한들 \(isPractice ? "" : "\(gameNumber) ")\(score)/\(answerBoard.count)\n\n\(result)"
    }

    /// Whether the place of the next letter is on the board. A state comes from a file or a server and may say anything.
    private var isPlayable: Bool {
        answerBoard.indices.contains(currentRow) && (0...answerBoard[currentRow].count).contains(currentColumn)
            && answerBoard[currentRow].count == jamoCount
    }

    private mutating func finish(won: Bool) {
        isGameFinished = true
        didPlayerWin = won
        if didPlayerLose != nil { didPlayerLose = !won }
    }
}
