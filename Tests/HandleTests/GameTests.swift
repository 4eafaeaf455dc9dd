import Foundation
import TestSupport
import Testing

@testable import Handle

@Suite("A game")
struct GameTests {
    @Test("typing, deleting and submitting move the place of the next letter and nothing else")
    func typing() throws {
        var game = Game(answer: "사람")
        check(game.submit() == .incomplete(missing: 5))
        check(!game.deleteLast())
        try check(game.type("마음") == 5)
        check(!game.type(.siot))
        try check(game.type("사") == 0)
        #expect(Hangul.composed(game.typed) == "마음")
        check(game.deleteLast())
        #expect(game.currentColumn == 4)
        check(game.submit() == .incomplete(missing: 1))
        #expect(throws: NotHangul(character: "!")) { try game.type("ㅁ!") }
        #expect(game.currentColumn == 4)
        game.type(.mieum)
        check(game.submit() == .marked([.absent, .rightPlace, .absent, .absent, .rightPlace]))
        #expect(game.currentRow == 1)
        #expect(game.currentColumn == 0)
        check(!game.deleteLast())
        #expect(game.result == "⬛🟩⬛⬛🟩")
        #expect(game.keyBoard[.mieum] == .rightPlace)
        #expect(!game.isGameFinished)
    }

    @Test("the right word wins and ends the game")
    func winning() throws {
        var game = Game(answer: "사람", gameNumber: 273)
        try game.type("사랑")
        _ = game.submit()
        try game.type("사람")
        check(game.submit() == .won(Array(repeating: .rightPlace, count: 5)))
        #expect(game.isGameFinished && game.didPlayerWin)
        #expect(game.resultToShare == "한들 273 2/6\n\n🟩🟩🟩🟩⬛\n🟩🟩🟩🟩🟩")
        let over = game
        check(!game.type(.a))
        check(!game.deleteLast())
        check(game.submit() == .finished)
        #expect(game == over)
    }

    @Test("the sixth wrong row loses")
    func losing() throws {
        var game = Game(answer: "사람")
        for row in 1...6 {
            try game.type("구름")
            let submission = game.submit()
            if row < 6 {
                #expect(submission == .marked(Mark.marks(of: try Hangul.letters(of: "구름"), against: try letters("사람"))))
            } else {
                #expect(submission == .lost(Mark.marks(of: try Hangul.letters(of: "구름"), against: try letters("사람"))))
            }
        }
        #expect(game.isGameFinished && !game.didPlayerWin)
        #expect(game.resultToShare.hasPrefix("한들 1 X/6\n\n"))
        check(game.submit() == .finished)
    }

    @Test("a game of a moment asks the word of that day, and words come back with the type")
    func day() throws {
        let game = Game(of: Date(timeIntervalSince1970: 1_759_240_800))
        #expect(game.gameNumber == 273)
        #expect(game.answer == "사람")
        #expect(game.wordDict == AnswerWords.all)
        let state = try JSONEncoder().encode(game)
        #expect(try JSONDecoder().decode(Game.self, from: state).wordDict == AnswerWords.all)
        #expect(!String(decoding: state, as: UTF8.self).contains("wordDict"))
    }

    @Test("no state, however damaged, makes a move trap")
    func damaged() throws {
        var random = SeededRandom(for: "damaged games")
        let odd = [Int.min, -1, 0, 1, 4, 5, 6, 7, Int.max]
        for _ in 0..<5000 {
            var game = Game(answer: ["사람", "", "안녕", "abc", "사"].randomElement(using: &random) ?? "")
            game.currentRow = odd.randomElement(using: &random) ?? 0
            game.currentColumn = odd.randomElement(using: &random) ?? 0
            game.jamoCount = odd.randomElement(using: &random) ?? 0
            game.gameNumber = odd.randomElement(using: &random) ?? 0
            game.answerBoard = (0..<Int.random(in: 0...7, using: &random)).map { _ in
                Array(
                    repeating: Key(Bool.random(using: &random) ? .a : nil), count: Int.random(in: 0...7, using: &random)
                )
            }
            if Bool.random(using: &random) { game.keyBoard.rows = [] }
            for _ in 0..<8 {
                game.type(.siot)
                _ = game.typed
                if Bool.random(using: &random) { game.deleteLast() }
                _ = game.submit()
                _ = game.resultToShare
            }
        }
    }

    @Test("a move that changes the game sets its time, another one leaves it as it was")
    func time() throws {
        let times = (0...4).map { Date(timeIntervalSince1970: Double($0)) }
        var game = Game(answer: "사람")
        game.timestamp = times[0]
        check(!game.deleteLast(at: times[4]))
        check(game.submit(at: times[4]) == .incomplete(missing: 5))
        #expect(game.timestamp == times[0])
        try game.type("사랑", at: times[1])
        #expect(game.timestamp == times[1])
        check(!game.type(.a, at: times[4]))
        check(game.submit(accepting: { _ in false }, at: times[4]) == .notAWord)
        #expect(game.timestamp == times[1])
        game.deleteLast(at: times[2])
        #expect(game.timestamp == times[2])
        game.type(.mieum, at: times[2])
        _ = game.submit(accepting: { $0.last == .mieum }, at: times[3])
        #expect(game.timestamp == times[3])
        #expect(game.didPlayerWin)
        game.type(.a, at: times[4])
        #expect(game.timestamp == times[3])
    }

    @Test("an answer that is not five letters is not marked")
    func unplayable() throws {
        var game = Game(answer: "안녕")
        try game.type("사람")
        check(game.submit() == .unplayable)
        #expect(game.currentRow == 0)
    }

    private func letters(_ text: String) throws -> [Jamo] { try Hangul.letters(of: text) }
}

/// Expects what a mutating call gives, which `#expect` cannot take itself.
func check(_ holds: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(holds, sourceLocation: sourceLocation)
}
