import Foundation
import TestSupport
import Testing

@testable import Handle

@Suite("Statistics")
struct StatisticsTests {
    private func game(_ day: Int, _ guesses: Int?, at second: Double) throws -> Game {
        var game = Game(day: day)
        let moment = Date(timeIntervalSince1970: second)
        for _ in 0..<((guesses ?? 7) - 1) {
            try game.type(game.answer == "구름" ? "마음" : "구름", at: moment)
            _ = game.submit(at: moment)
        }
        if guesses != nil {
            try game.type(game.answer, at: moment)
            _ = game.submit(at: moment)
        }
        return game
    }

    @Test("streaks follow the order of play, a loss ends one, a game that goes on does not count")
    func streaks() throws {
        var games = [
            try game(10, 3, at: 100), try game(9, 1, at: 200), try game(11, nil, at: 300), try game(12, 6, at: 400),
        ]
        let statistics = Statistics(of: games.reversed())
        #expect(statistics.played == 4 && statistics.won == 3 && statistics.winPercent == 75)
        #expect(statistics.currentStreak == 1 && statistics.longestStreak == 2)
        #expect(statistics.wonWith == [1, 0, 1, 0, 0, 1])
        games.append(Game(day: 13))
        #expect(Statistics(of: games) == statistics)
        #expect(Statistics().winPercent == 0)
    }

    @Test("a day's game has the day's date for an id, and is the same on every device; practice has neither")
    func kinds() {
        #expect(Game(day: 273).id == "2025-09-30" && Game(day: 273).answer == "사람")
        #expect(Game.id(ofDay: 1) == "2025-01-01" && Game.id(ofDay: 0) == "2024-12-31")
        #expect(Game.id(ofDay: .max) == "\(Int.max)" && Game.id(ofDay: .min) == "\(Int.min)")
        let practice = Game.practice("구름")
        #expect(practice.isPractice && practice.id != Game.practice("구름").id)
        #expect(practice.resultToShare == "한들 0/6\n\n")
    }

    @Test("a move is made where it can be; a row that changed meanwhile is not submitted")
    func moves() throws {
        var game = Game(day: 273)
        let letters = try Hangul.letters(of: "구름")
        check(game.make(.type(letters + [.a])))
        check(!game.make(.type([.a])))
        let others = try Hangul.letters(of: "나물")
        check(!game.make(.submit(others)))
        check(game.make(.submit(letters)))
        #expect(game.currentRow == 1)
        check(!game.make(.deleteLast))
        check(!game.make(.submit(letters)))
        var other = game
        #expect(game.isBeginning(of: other) && Game(day: 273).isBeginning(of: game))
        other.make(.type(letters))
        other.make(.submit(letters))
        #expect(game.isBeginning(of: other) && !other.isBeginning(of: game))
        #expect(!Game.practice("구름").isBeginning(of: game))
    }
}
