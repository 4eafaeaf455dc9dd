import Arguments
import Foundation
import Postgres
import SyncServer
import TerminalText

/// `ieumd forget`: removes a player with everything, beside running daemons.
struct ForgetCommand {
    static let spec = CommandSpec(
        "ieumd forget", "remove a player with everything: devices, games, all versions, codes; it cannot be undone",
        positionals: ["<player>"],
        options: [
            OptionSpec("yes", help: "do not ask"), OptionSpec("dry-run", help: "remove nothing, and say what there is"),
            OptionSpec("json", help: "say it as one JSON object"),
        ] + DatabaseChoice.options,
        examples: [
            "ieumd forget 3f2a9c01-7d5e-4c2b-9a41-0b6f3d2e8c17 --dry-run",
            "ieumd forget 3f2a9c01-7d5e-4c2b-9a41-0b6f3d2e8c17",
        ],
        exitCodes: [
            (0, "done"), (1, "there is no such player, or the answer was no"), (2, "usage"),
            (4, "the database cannot be reached or changed; run it again, it goes on"),
        ])

    private let call: PlayerCall
    private let isSure: Bool
    private let isDryRun: Bool

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        let parsed = try ParsedArguments(arguments, of: Self.spec, environment: environment)
        call = try PlayerCall(parsed, environment: environment)
        isSure = parsed.flag("yes")
        isDryRun = parsed.flag("dry-run")
        guard isSure || isDryRun || isatty(STDIN_FILENO) == 1 else {
            throw UsageError("nobody can be asked here whether that is meant: add --yes", usage: Self.spec.usage)
        }
    }

    /// Forgets; gives the exit code.
    func run() -> Int32 {
        call.choice.withConnection(for: "forget") { connection in
            let directory = PlayerDirectory(connection)
            guard let found = try directory.player(call.player), let devices = try directory.devices(of: call.player)
            else {
                return call.playerIsUnknown()
            }
            if isDryRun {
                if call.isJSON {
                    Console.json(found)
                } else {
                    Console.output(
                        "would remove \(found.versions) versions of \(found.games) games (\(found.bytes.sizeText)) "
                            + "and \(devices.count) devices\n")
                    Console.talk("Keep a copy first: \(exportCall)\n")
                }
                return 0
            }
            guard isSure || confirm(found, devices) else {
                Console.error("nothing was removed", hint: nil)
                return 1
            }
            let report = try forget(connection)
            if call.isJSON {
                Console.json(report)
            } else {
                Console.output(
                    "removed \(report.versions) versions of \(report.games) games (\(report.bytes.sizeText)), "
                        + "\(report.devices) devices and the player\n")
            }
            return 0
        }
    }

    private func confirm(_ found: PlayerDirectory.Player, _ devices: [PlayerDirectory.Device]) -> Bool {
        let names = devices.prefix(5).map(\.name).joined(separator: ", ") + (devices.count > 5 ? " …" : "")
        Console.talk(
            "This removes \(found.versions) versions of \(found.games) games (\(found.bytes.sizeText)) and "
                + "\(devices.count) devices (\(names.terminalSafe)). It cannot be undone.\n"
                + "Keep a copy first: \(exportCall)\n")
        return Console.ask("Type the player's id to go on: ")?.trimmingCharacters(in: .whitespaces).lowercased()
            == call.id
    }

    private var exportCall: String { "ieumd export \(call.id) --output \(call.id).jsonl" }

    private func forget(_ first: BlockingConnection) throws -> Forgetting.Report {
        var connection = first
        var forgetting = Forgetting(call.player)
        var failures = 0
        /// Each part is one transaction: it was done or it was not, and doing it again does what is left.
        func persistently<Value>(_ part: (BlockingConnection) throws(DatabaseError) -> Value) throws -> Value {
            while true {
                do throws(DatabaseError) {
                    let value = try part(connection)
                    failures = 0
                    return value
                } catch {
                    failures += 1
                    guard failures < 5, error.isRetryable || error.sqlState == .lockNotAvailable else { throw error }
                    Thread.sleep(forTimeInterval: 0.2 * Double(failures))
                    if !connection.isConnected { connection = try reconnect() }
                }
            }
        }
        _ = try persistently { (connection) throws(DatabaseError) in try forgetting.begin(on: connection) }
        while try persistently({ (connection) throws(DatabaseError) in try forgetting.step(on: connection) }) {
            if isatty(STDERR_FILENO) == 1 { Console.talk("\r\u{1B}[Kremoved \(forgetting.report.versions) versions") }
        }
        try persistently { (connection) throws(DatabaseError) in try forgetting.finish(on: connection) }
        if isatty(STDERR_FILENO) == 1 { Console.talk("\r\u{1B}[K") }
        return forgetting.report
    }

    private func reconnect() throws -> BlockingConnection {
        // A private PostgreSQL runs with its daemon; where it went, the daemon starts it again.
        guard let conninfo = call.choice.conninfo ?? PrivateDatabase.running(in: call.choice.directory) else {
            throw DatabaseError(.connection, "the private PostgreSQL went away")
        }
        return try DatabaseChoice.connect(conninfo, "forget")
    }
}
