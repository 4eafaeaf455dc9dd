import Arguments
import Foundation
import SyncServer

/// `ieumd revoke`: ends a player's device.
struct RevokeCommand {
    static let spec = CommandSpec(
        "ieumd revoke", "end a player's device: its token, and within a second its connections; its saves stay",
        positionals: ["<player>", "<device>"],
        options: [OptionSpec("json", help: "say it as JSON")] + DatabaseChoice.options,
        examples: ["ieumd revoke 3f2a9c01-7d5e-4c2b-9a41-0b6f3d2e8c17 9a0c6b12-4e0f-4f6e-8a5d-2c7b1e9f0d33"],
        exitCodes: [
            (0, "done, or it was revoked before"), (1, "the player has no such device"), (2, "usage"),
            (4, "the database cannot be reached or changed"),
        ])

    private let call: PlayerCall
    private let device: UUID

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        let parsed = try ParsedArguments(arguments, of: Self.spec, environment: environment)
        call = try PlayerCall(parsed, environment: environment)
        device = try parsed.id(1, "a device")
    }

    /// Revokes; gives the exit code.
    func run() -> Int32 {
        call.choice.withConnection(for: "revoke") { connection in
            guard try PlayerDirectory(connection).revoke(device, of: call.player) else {
                Console.error("the player has no such device", hint: "List them: ieumd devices PLAYER")
                return 1
            }
            let id = device.uuidString.lowercased()
            if call.isJSON { Console.json(["revoked": id]) } else { Console.output("\(id) is revoked\n") }
            return 0
        }
    }
}

/// `ieumd pair`: lets a device join a player who has none left.
struct PairCommand {
    static let spec = CommandSpec(
        "ieumd pair", "make a code by which a device joins a player who has lost all others",
        positionals: ["<player>"],
        options: [OptionSpec("json", help: "say it as JSON")] + DatabaseChoice.options,
        examples: ["ieumd pair 3f2a9c01-7d5e-4c2b-9a41-0b6f3d2e8c17"],
        exitCodes: [
            (0, "done"), (1, "there is no such player"), (2, "usage"),
            (4, "the database cannot be reached or changed"),
        ])

    private let call: PlayerCall

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        call = try PlayerCall(
            ParsedArguments(arguments, of: Self.spec, environment: environment), environment: environment)
    }

    /// Makes the code; gives the exit code.
    func run() -> Int32 {
        call.choice.withConnection(for: "pair") { connection in
            guard let made = try PlayerDirectory(connection).makePairingCode(for: call.player) else {
                return call.playerIsUnknown()
            }
            if call.isJSON {
                Console.json(["code": made.code, "expires": made.expires])
            } else {
                Console.output("\(made.code)\n")
                Console.talk(
                    "Good for ten minutes and one device: ieum link \(made.code) --server HOST:PORT --device NAME\n")
            }
            return 0
        }
    }
}
