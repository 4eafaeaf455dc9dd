import Foundation

/// How a player has done: what the finished games tell, as the view `handle_statistics` tells it in psql.
///
/// A streak counts games in the order in which they were last played; a day without a game breaks nothing.
public struct Statistics: Hashable, Sendable {
    /// Finished games.
    public private(set) var played = 0
    /// How many of them were won.
    public private(set) var won = 0
    /// Games won in a row up to the last one.
    public private(set) var currentStreak = 0
    /// The most games won in a row.
    public private(set) var longestStreak = 0
    /// Games won with the first guess, with the second, and so on.
    public private(set) var wonWith = Array(repeating: 0, count: Game.rowCount)

    /// Counts games, which may be in any order; those that go on are left out.
    public init(of games: some Sequence<Game> = []) {
        let finished = games.filter(\.isGameFinished).sorted { ($0.timestamp, $0.id) < ($1.timestamp, $1.id) }
        for game in finished {
            played += 1
            guard game.didPlayerWin else {
                currentStreak = 0
                continue
            }
            won += 1
            currentStreak += 1
            longestStreak = max(longestStreak, currentStreak)
            let guesses = game.submittedRows
            if wonWith.indices.contains(guesses - 1) { wonWith[guesses - 1] += 1 }
        }
    }

    /// Won games in percent, rounded; 0 before the first one is finished.
    public var winPercent: Int {
        played == 0 ? 0 : Int((100 * Double(won) / Double(played)).rounded())
    }
}

extension Game {
    /// How many rows carry marks, whatever ``currentRow`` says: what the database counts, too.
    fileprivate var submittedRows: Int {
        answerBoard.count { row in !row.isEmpty && row.allSatisfy { $0.mark != .unmarked } }
    }
}
