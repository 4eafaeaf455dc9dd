import Handle

/// What goes on at the screen, as a value: keystrokes and news come in, actions go out. No I/O and no clock.
///
/// The game itself is the store's. A move goes out as an action, is made there on what is stored at that moment, and the game
/// that came of it comes back; so a move is never made on something outdated, and every key is saved.
package struct PlaySession: Hashable, Sendable {
    /// What the shell around has to do.
    package enum Action: Hashable, Sendable {
        /// Make a move in the stored game, and hand the game to ``PlaySession/played(_:)``.
        case make(Game.Move)
        /// Ask the dictionary, and hand the answer to ``PlaySession/answered(_:for:)``.
        case lookUp([Jamo])
        /// Open the next game, and hand it to ``PlaySession/open(_:)``.
        case openNext
        /// Settle the clash: take the other side, or leave it as it is. Then ``PlaySession/settled()``.
        case settle(takingOther: Bool)
        case redraw
        case suspend
        case leave
    }

    /// What the dictionary says of a guess.
    package enum Verdict: Hashable, Sendable {
        case word
        case noWord
        /// There is no dictionary, or it did not answer in time.
        case unknown
    }

    /// The line above the keyboard.
    package struct Notice: Hashable, Sendable {
        package var text: String
        package var isAlert = false
    }

    /// The game on the screen.
    package private(set) var game: Game
    /// Why the game cannot be shown or played, if so.
    package private(set) var problem: String?
    /// What the line above the keyboard says.
    package private(set) var notice: Notice?
    /// What is to be chosen before the game goes on.
    package private(set) var clash: Clash?
    /// The player's finished games.
    package var statistics = Statistics()
    /// How the game stands with the server.
    package var connection: Connection
    /// Whether the next game is a day's and no practice.
    package var isDayWaiting = false
    /// Columns and rows of the terminal.
    package var size: (width: Int, height: Int) {
        get { (width, height) }
        set { (width, height) = newValue }
    }

    private var width = 80
    private var height = 24
    /// What the dictionary was asked.
    private var asked: [Jamo]?
    /// What a second Enter takes.
    private var doubted: [Jamo]?

    /// Begins with a game.
    package init(_ game: Game, connection: Connection) {
        self.game = game
        self.connection = connection
        open(game)
    }

    // MARK: Keys

    /// Takes a keystroke.
    package mutating func press(_ key: Keystroke) -> [Action] {
        switch key {
        case .leave: return [.leave]
        case .suspend: return [.suspend]
        case .redraw: return [.redraw]
        case .letters, .digit, .backspace, .enter: break
        }
        // Nobody plays what cannot be seen.
        guard isRoomy else { return [] }
        if clash != nil {
            switch key {
            case .digit(1): return [.settle(takingOther: false)]
            case .digit(2): return [.settle(takingOther: true)]
            default: return []
            }
        }
        guard problem == nil else { return [] }
        if game.isGameFinished { return key == .enter ? [.openNext] : [] }
        switch key {
        case .letters(let letters): return type(letters)
        case .backspace: return forgetGuess([.make(.deleteLast)])
        case .enter: return enter()
        case .digit, .redraw, .suspend, .leave: return []
        }
    }

    private mutating func type(_ letters: [Jamo]) -> [Action] {
        guard game.typed.count < game.jamoCount else {
            say("The row is full: Enter guesses, Backspace takes back")
            return []
        }
        return forgetGuess([.make(.type(letters))])
    }

    private mutating func forgetGuess(_ actions: [Action]) -> [Action] {
        (asked, doubted, notice) = (nil, nil, nil)
        return actions
    }

    private mutating func enter() -> [Action] {
        let guess = game.typed
        guard guess.count == game.jamoCount else {
            let missing = game.jamoCount - guess.count
            say("\(missing) \(missing == 1 ? "letter is" : "letters are") missing")
            return []
        }
        // The dictionary answers in its time, or is given up.
        guard asked == nil else { return [] }
        guard doubted != guess else { return forgetGuess([.make(.submit(guess))]) }
        if Hangul.readings(of: guess).contains(where: AnswerWords.contains) {
            return forgetGuess([.make(.submit(guess))])
        }
        asked = guess
        say("Looking it up")
        return [.lookUp(guess)]
    }

    /// Takes the dictionary's answer.
    package mutating func answered(_ verdict: Verdict, for guess: [Jamo]) -> [Action] {
        guard asked == guess else { return [] }
        asked = nil
        guard !game.isGameFinished, game.typed == guess else { return [] }
        let word = Hangul.composed(guess)
        switch verdict {
        case .word: return forgetGuess([.make(.submit(guess))])
        case .noWord: say("\(word) is in no dictionary here; Enter takes it", isAlert: true)
        case .unknown: say("No dictionary to look \(word) up; Enter takes it", isAlert: true)
        }
        doubted = guess
        return []
    }

    // MARK: News

    /// Shows another game.
    package mutating func open(_ game: Game) {
        self.game = game
        (problem, asked, doubted, notice) = (nil, nil, nil, nil)
        if game.isGameFinished {
            tellEnd()
        } else if game.guesses.isEmpty, game.typed.isEmpty {
            say(
                game.isPractice
                    ? "A word to practise: five letters, six rows" : "Guess the word: five letters, six rows")
        }
    }

    /// The game after a move that was made here.
    package mutating func played(_ game: Game) {
        let isNewRow = game.currentRow != self.game.currentRow
        self.game = game
        problem = nil
        if game.isGameFinished {
            tellEnd()
        } else if isNewRow, let row = game.guesses.last {
            let right = row.count { $0.mark == .rightPlace }
            if right == game.jamoCount - 1 { say("All but one") }
        }
    }

    /// The game as it is stored now, after something was saved here or elsewhere.
    package mutating func found(_ game: Game) {
        guard game.id == self.game.id else { return open(game) }
        // A time is stored to the microsecond; here it may be finer.
        var known = self.game
        known.timestamp = game.timestamp
        self.game = game
        guard game != known || problem != nil else { return }
        problem = nil
        if game.typed != doubted { doubted = nil }
        if game.typed != asked { asked = nil }
        if game.isGameFinished {
            tellEnd()
        } else if doubted == nil, asked == nil {
            say("Another device plays along")
        }
    }

    /// The stored game cannot be read, or cannot be saved.
    package mutating func failed(_ reason: String) {
        problem = reason
    }

    /// Two devices have played one game.
    package mutating func met(_ clash: Clash) {
        self.clash = clash
    }

    /// The clash is over.
    package mutating func settled(saying text: String? = nil) {
        clash = nil
        if let text { say(text) }
    }

    /// Says something above the keyboard.
    package mutating func say(_ text: String, isAlert: Bool = false) {
        notice = Notice(text: text, isAlert: isAlert)
    }

    private mutating func tellEnd() {
        guard game.didPlayerWin else {
            say("The word was \(game.answer)")
            return
        }
        let praise = ["Unbelievable", "Brilliant", "Splendid", "Well done", "Good", "At the last moment"]
        let guesses = game.guesses.count
        say("\(praise.indices.contains(guesses - 1) ? praise[guesses - 1] : "Won"): \(game.answer)")
    }
}

extension PlaySession {
    /// Columns and rows that the game needs.
    package static let neededSize = (width: 80, height: 24)

    /// Whether the terminal is large enough.
    package var isRoomy: Bool { width >= Self.neededSize.width && height >= Self.neededSize.height }
}
