import Arguments
import Foundation

/// What every command about one player is given: whose database, which player, and how to answer.
struct PlayerCall {
    let choice: DatabaseChoice
    let player: UUID
    let isJSON: Bool

    /// The player's id as it is written everywhere.
    var id: String { player.uuidString.lowercased() }

    /// Checks the arguments; the player is the first positional one.
    init(_ parsed: ParsedArguments, environment: [String: String]) throws(UsageError) {
        choice = try DatabaseChoice(parsed, environment: environment)
        player = try parsed.id(0, "a player")
        isJSON = parsed.flag("json")
    }

    /// Says that there is no such player; gives the exit code.
    func playerIsUnknown() -> Int32 {
        Console.error(
            "there is no player \(id)", hint: "Find players: ieumd players --search TEXT")
        return 1
    }
}
