import Arguments
import Foundation
import SyncServer

/// `ieumd players`: lists players, and what there is of each.
struct PlayersCommand {
    static let spec = CommandSpec(
        "ieumd players", "list players in the order of their ids, and what there is of each",
        options: [
            OptionSpec(
                "search", "TEXT", help: "only those whose id begins so (four characters or more), or a device's name"),
            OptionSpec("limit", "N", default: "50", help: "how many at most"),
            OptionSpec("after", "ID", help: "only those behind this id"),
            OptionSpec("json", help: "a line of JSON for each"),
        ] + DatabaseChoice.options,
        examples: ["ieumd players", "ieumd players --search 3f2a", "ieumd players --search \"anna's\" --json"],
        exitCodes: [(0, "done"), (2, "usage"), (4, "the database cannot be reached")])

    private let choice: DatabaseChoice
    private let search: String?
    private let limit: Int
    private let after: UUID?
    private let isJSON: Bool

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        let parsed = try ParsedArguments(arguments, of: Self.spec, environment: environment)
        choice = try DatabaseChoice(parsed, environment: environment)
        search = parsed.string("search")
        limit = try parsed.integer("limit", in: 1...100_000) ?? 50
        after = parsed.string("after").flatMap { UUID(uuidString: $0) }
        guard after != nil || parsed.string("after") == nil else {
            throw UsageError("--after takes a player's id, a UUID", usage: Self.spec.usage)
        }
        isJSON = parsed.flag("json")
    }

    /// Lists; gives the exit code.
    func run() -> Int32 {
        choice.withConnection(for: "players") { connection in
            let players = try PlayerDirectory(connection).players(after: after, limit: limit + 1, search: search)
            let shown = players.prefix(limit)
            if isJSON {
                for player in shown { Console.json(player) }
            } else {
                Console.table(
                    ["PLAYER", "SIGNED UP (UTC)", "DEVICES", "GAMES", "VERSIONS", "SIZE", "LAST PUSH (UTC)"],
                    shown.map {
                        [
                            $0.player, $0.created.shortTime, "\($0.devices)", "\($0.games)", "\($0.versions)",
                            $0.bytes.sizeText, $0.lastPush?.shortTime ?? "-",
                        ]
                    })
            }
            if players.count > limit, let last = shown.last {
                Console.talk("More: add --after \(last.player)\n")
            }
            return 0
        }
    }
}

/// `ieumd devices`: lists a player's devices.
struct DevicesCommand {
    static let spec = CommandSpec(
        "ieumd devices", "list a player's devices", positionals: ["<player>"],
        options: [OptionSpec("json", help: "a line of JSON for each")] + DatabaseChoice.options,
        examples: ["ieumd devices 3f2a9c01-7d5e-4c2b-9a41-0b6f3d2e8c17"],
        exitCodes: [(0, "done"), (1, "there is no such player"), (2, "usage"), (4, "the database cannot be reached")])

    private let call: PlayerCall

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        call = try PlayerCall(
            ParsedArguments(arguments, of: Self.spec, environment: environment), environment: environment)
    }

    /// Lists; gives the exit code.
    func run() -> Int32 {
        call.choice.withConnection(for: "devices") { connection in
            guard let devices = try PlayerDirectory(connection).devices(of: call.player) else {
                return call.playerIsUnknown()
            }
            if call.isJSON {
                for device in devices { Console.json(device) }
            } else {
                Console.table(
                    ["DEVICE", "JOINED (UTC)", "REVOKED (UTC)", "PUSHES", "LAST PUSH (UTC)", "NAME"],
                    devices.map {
                        [
                            $0.device, $0.created.shortTime, $0.revoked?.shortTime ?? "-", "\($0.pushes)",
                            $0.lastPush?.shortTime ?? "-", $0.name,
                        ]
                    })
            }
            return 0
        }
    }
}
