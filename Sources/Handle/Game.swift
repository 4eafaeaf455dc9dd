import Foundation

/// One game of 한들: the answer, six rows of five letters, and where the player is.
///
/// Everything that a player would miss is in here, so saving this value after each key is all that carrying on needs. The
/// names of the properties are the keys of the stored state; adding one takes one line, with its default value.
public struct Game: Codable, Hashable, Sendable {
    /// Rows on the board: guesses that a player has.
    public static let rowCount = 6

    /// Names the game: a UUID's text, or the date of a day's game.
    public var id = UUID().uuidString
    /// When the game was last changed, as the device's clock says.
    public var timestamp = Date()
    /// Letters in a row.
    public var jamoCount = 5
    /// Number of the day whose word is asked, see ``AnswerWords/number(of:)``; ``practiceNumber`` for none.
    public var gameNumber = 1
    /// The word to be guessed, in syllables.
    public var answer: String
    /// The keyboard with what the guesses have told.
    public var keyBoard = KeyBoard()
    /// The rows from the top, each of ``jamoCount`` cells.
    public var answerBoard: [[Key]]
    /// Whether the game is over.
    public var isGameFinished = false
    /// Whether it was won.
    public var didPlayerWin = false
    /// The row that is being typed, from 0; past the last one when all are used.
    public var currentRow = 0
    /// The column that the next letter goes to, from 0.
    public var currentColumn = 0

    /// What a ``PersistedGame`` said, kept so that such a record goes out as it came. Nil, and not stored, in any other game.
    var didPlayerLose: Bool?

    /// The words that answers are taken from: shared by all games, and so not stored.
    public var wordDict: [WordDict] { AnswerWords.all }

    /// Starts a game.
    public init(answer: String, gameNumber: Int = 1) {
        self.answer = answer
        self.gameNumber = gameNumber
        answerBoard = Array(repeating: Array(repeating: Key(), count: 5), count: Game.rowCount)
    }

    /// Starts the game of the day that a moment is in, in Korea's time.
    public init(of moment: Date) { self.init(day: AnswerWords.number(of: moment)) }
}
