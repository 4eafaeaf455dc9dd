import Foundation
import IeumClient

/// One game: find a number from 1 to 100.
struct Game: Persistable {
    static let collection = "tutorial.guess"

    var id = UUID().uuidString
    var timestamp = Date()
    var secret = Int.random(in: 1...100)
    var guesses: [Int] = []

    /// The values of properties that an older app did not store.
    static var defaults: Game? { Game() }

    var isOver: Bool { guesses.last == secret }

    mutating func guess(_ number: Int) {
        guesses.append(number)
        timestamp = Date()
    }

    /// The guesses so far, e.g. `50 too high, 25 too low`.
    var board: String {
        let rated = guesses.map { guess in
            guess == secret ? "\(guess) found!" : "\(guess) too \(guess < secret ? "low" : "high")"
        }
        return rated.joined(separator: ", ")
    }
}
