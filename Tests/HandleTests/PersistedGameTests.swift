import Foundation
import Testing

@testable import Handle

@Suite("Games of the hand-mapped form")
struct PersistedGameTests {
    @Test("a record comes back as it was, what Game has no use for too", arguments: [false, true])
    func unchanged(didPlayerLose: Bool) throws {
        var object = try Game(answer: "사람", gameNumber: 273).persistedObject()
        object.didPlayerLose = didPlayerLose
        object.currentColumn = 3
        object.jamoCount = 5
        #expect(try Game(persistedObject: object).persistedObject() == object)

        // Through the state that Game itself is stored as, too.
        let game = try Game(persistedObject: object)
        let stored = try JSONDecoder().decode(Game.self, from: JSONEncoder().encode(game))
        #expect(stored.didPlayerLose == didPlayerLose)
    }

    @Test("a game that is lost goes out as lost")
    func lost() throws {
        for fromRecord in [false, true] {
            var game = Game(answer: "사람")
            if fromRecord { game = try Game(persistedObject: game.persistedObject()) }
            for _ in 0..<Game.rowCount {
                try game.type("구름")
                _ = game.submit()
            }
            #expect(try game.persistedObject().didPlayerLose)
            #expect(try !game.persistedObject().didPlayerWin)
        }
    }

    @Test(
        "damaged JSON is an error that names game and property",
        arguments: [
            "", "{", "[]", "null", "{\"rows\":[[{\"jamo\":\"x\",\"mark\":\"none\"}]]}",
            "{\"rows\":[[{\"jamo\":\"ㅏ\",\"mark\":\"new\"}]]}",
            "{\"rows\":7}", "[[{\"jamo\":\"ㄲ\",\"mark\":\"none\"}]]", "\u{FFFD}",
        ])
    func damaged(json: String) throws {
        let good = try Game(answer: "사람").persistedObject()
        var object = good
        object.keyBoard = Data(json.utf8)
        let keyBoardError = try #require(throws: PersistedGameError.self) { try Game(persistedObject: object) }
        #expect(keyBoardError.id == good.id)
        #expect(keyBoardError.property == "keyBoard")

        guard json != "[]" else { return }
        object = good
        object.answerBoard = Data(json.utf8)
        let boardError = try #require(throws: PersistedGameError.self) { try Game(persistedObject: object) }
        #expect(boardError.property == "answerBoard")
    }

    @Test("JSON cut or changed at any byte never traps")
    func anyByte() throws {
        let good = try Game(answer: "사람").persistedObject()
        let step = 7
        for end in stride(from: 0, to: good.answerBoard.count, by: step) {
            var object = good
            object.answerBoard = good.answerBoard.prefix(end)
            #expect(throws: PersistedGameError.self) { try Game(persistedObject: object) }
            object.answerBoard = good.answerBoard
            object.answerBoard[object.answerBoard.startIndex + end] = 0xFF
            _ = try? Game(persistedObject: object)
        }
    }
}
