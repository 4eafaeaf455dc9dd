import Foundation
import IeumClient

/// The worked example's game, as an app would write it.
struct WordGame: Persistable, Equatable {
    static let collection = "handle.game"
    var id = UUID().uuidString
    var timestamp = Date()
    var jamoCount = 5
    var gameNumber = 1
    var answer: String
    var keyBoard = KeyBoard()
    var answerBoard = Array(repeating: Array(repeating: Key(), count: 5), count: 6)
    var isGameFinished = false
    var didPlayerWin = false
    var currentRow = 0
    var currentColumn = 0
    var wordDict: [String] { WordGame.words }

    static let words = ["사람", "구름"]
    static var defaults: WordGame? { WordGame(id: "", timestamp: .distantPast, answer: "") }
}

struct KeyBoard: Codable, Equatable, Sendable {
    var keys = "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎㅏㅑㅓㅕㅗㅛㅜㅠㅡㅣ".map { Key(letter: String($0)) }
}

struct Key: Codable, Equatable, Sendable {
    enum Status: String, Codable { case unused, absent, misplaced, right }
    var letter = ""
    var status = Status.unused
}

/// The old code's pair: a game with what cannot be coded, and what it was stored as.
struct OldGame: Persistable {
    final class WordList: Sendable {}

    static let collection = "handle.old"
    var id: String
    var timestamp: Date
    var answer = ""
    var keyBoard = KeyBoard()
    var answerBoard: [[Key]] = []
    var wordDict = WordList()

    init(id: String, timestamp: Date, answer: String) {
        (self.id, self.timestamp, self.answer) = (id, timestamp, answer)
    }

    init(persistedObject: PersistedGame) throws {
        id = persistedObject.id
        timestamp = persistedObject.timestamp
        answer = persistedObject.answer
        keyBoard = try JSONDecoder().decode(KeyBoard.self, from: persistedObject.keyBoard)
        answerBoard = try JSONDecoder().decode([[Key]].self, from: persistedObject.answerBoard)
    }

    func persistedObject() throws -> PersistedGame {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return PersistedGame(
            id: id, timestamp: timestamp, answer: answer, keyBoard: try encoder.encode(keyBoard),
            answerBoard: try encoder.encode(answerBoard))
    }
}

struct PersistedGame: PersistedRecord {
    var id = ""
    var timestamp = Date(timeIntervalSinceReferenceDate: 0)
    var gameNumber = 1
    var answer = ""
    var keyBoard = Data()
    var answerBoard = Data()
    var didPlayerLose = false

    static var defaults: PersistedGame? { PersistedGame() }
}
