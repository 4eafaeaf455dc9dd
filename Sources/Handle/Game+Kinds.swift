import Foundation

/// The word of a day, and practice.
extension Game {
    /// The ``gameNumber`` of a game for practice, which belongs to no day.
    public static let practiceNumber = 0

    /// Starts the game of a day. Its ``id`` is the day's, so that all devices of a player play one game.
    public init(day number: Int) {
        self.init(answer: AnswerWords.answer(forDay: number), gameNumber: number)
        id = Self.id(ofDay: number)
    }

    /// Starts a game for practice with a word of the list.
    public static func practice(_ word: String) -> Game { Game(answer: word, gameNumber: practiceNumber) }

    /// Whether the game is for practice.
    public var isPractice: Bool { gameNumber == Self.practiceNumber }

    /// The id of the game of a day: its date in Korea, e.g. `2025-09-30` for 273.
    public static func id(ofDay number: Int) -> String { AnswerWords.date(ofDay: number) }

    /// A move, for whoever keeps the game somewhere else and has it made there.
    public enum Move: Hashable, Sendable {
        /// Letters are typed, as far as the row has room.
        case type([Jamo])
        /// The last letter is taken back.
        case deleteLast
        /// The row is submitted, if it still holds these letters.
        case submit([Jamo])
    }

    /// Makes a move.
    /// - Returns: Whether it changed the game.
    @discardableResult
    public mutating func make(_ move: Move, at now: Date = Date()) -> Bool {
        switch move {
        case .type(let letters): return letters.count { type($0, at: now) } > 0
        case .deleteLast: return deleteLast(at: now)
        case .submit(let letters):
            switch submit(accepting: { $0 == letters }, at: now) {
            case .marked, .won, .lost: return true
            case .incomplete, .notAWord, .finished, .unplayable: return false
            }
        }
    }

    /// Whether all guesses of this game are, in this order, the first ones of another: nothing is lost with it but letters that
    /// were not submitted.
    public func isBeginning(of other: Game) -> Bool {
        let (mine, theirs) = (guesses.map { $0.map(\.jamo) }, other.guesses.map { $0.map(\.jamo) })
        return answer == other.answer && theirs.starts(with: mine)
    }
}
