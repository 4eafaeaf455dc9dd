// snippet
import Foundation
import IeumClient

// hide

/// The first form of the tutorial's main.swift, before there is a server: compiled here. The second is in Examples/guess.
enum TutorialSnippets {
    struct Game: Persistable {
        static let collection = "tutorial.guess"
        var id = UUID().uuidString
        var timestamp = Date()
        var guesses: [Int] = []
        var isOver = false
        var board: String { "\(guesses)" }
        mutating func guess(_ number: Int) { guesses.append(number) }
    }

    static func alone() throws {
        // show
        let store = try GameStore(at: URL(fileURLWithPath: "games.sqlite"))
        var game = try store.latest(Game.self) ?? Game()
        if game.isOver { game = Game() }
        print("so far: \(game.board)")
        print("your guess?")
        if let line = readLine(), let number = Int(line) {
            game.guess(number)
            try store.save(game)
            print(game.board)
        }
        // end
    }
}
