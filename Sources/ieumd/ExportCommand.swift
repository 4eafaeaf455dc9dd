import Arguments
import FileDraft
import Foundation
import Postgres
import SyncServer
import TerminalText

/// `ieumd export`: writes a player's games and whole history as the JSON Lines of `ieum export`.
struct ExportCommand {
    static let spec = CommandSpec(
        "ieumd export", "write a player's games and their whole history as JSON Lines, which ieum import takes",
        positionals: ["<player>"],
        options: [
            OptionSpec("output", "FILE|-", default: "-", help: "where to; - is stdout"),
            OptionSpec("replace", help: "write over a file that is there"),
            OptionSpec("json", help: "with --output FILE: say what was written as one JSON object"),
        ] + DatabaseChoice.options,
        examples: ["ieumd export 3f2a9c01-7d5e-4c2b-9a41-0b6f3d2e8c17 --output player.jsonl"],
        exitCodes: [
            (0, "done"), (1, "there is no such player, or the file cannot be written"), (2, "usage"),
            (3, "forgetting the player has begun: versions are missing"), (4, "the database cannot be reached"),
            (141, "nobody reads the output"),
        ])

    private let call: PlayerCall
    private let path: String
    private let isReplacing: Bool

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        let parsed = try ParsedArguments(arguments, of: Self.spec, environment: environment)
        call = try PlayerCall(parsed, environment: environment)
        path = parsed.string("output") ?? "-"
        isReplacing = parsed.flag("replace")
        guard path != "-" || !call.isJSON else {
            throw UsageError("--json tells of a file: name it with --output", usage: Self.spec.usage)
        }
    }

    /// Exports; gives the exit code.
    func run() -> Int32 {
        // Writing to a reader that left is an error that is handled: a PostgreSQL that was started here is stopped.
        signal(SIGPIPE, SIG_IGN)
        return call.choice.withConnection(for: "export") { connection in
            do {
                return try export(over: connection)
            } catch HistoryExport.Refusal.unknownPlayer {
                return call.playerIsUnknown()
            } catch HistoryExport.Refusal.beingForgotten {
                Console.error(
                    "being-forgotten: removing the player \(call.id) has begun, and versions are missing",
                    hint: "Remove the rest: ieumd forget \(call.id)")
                return 3
            } catch let failure as FileDraft.Failure {
                Console.error(
                    failure.message,
                    hint: failure.number == EEXIST ? "Choose another, or write over it: --replace" : nil)
                return 1
            } catch let failure as Console.Broken {
                if failure.number == EPIPE { return 141 }
                Console.error("stdout cannot be written: \(String(cString: strerror(failure.number)))", hint: nil)
                return 1
            }
        }
    }

    private func export(over connection: BlockingConnection) throws -> Int32 {
        let isTerminal = isatty(STDERR_FILENO) == 1
        let history = HistoryExport(call.player, over: connection)
        func progress(_ versions: Int64) {
            if isTerminal, path != "-" { Console.talk("\r\u{1B}[K\(versions) versions") }
        }
        guard path != "-" else {
            // For the eyes: what an import takes goes into a file or a pipe.
            let isShown = isatty(STDOUT_FILENO) == 1
            var buffer: [UInt8] = []
            func flush() throws {
                try Console.data(
                    isShown ? Array(String(decoding: buffer, as: UTF8.self).terminalSafeJSON.utf8) : buffer)
                buffer.removeAll(keepingCapacity: true)
            }
            _ = try history.run { lines in
                buffer += lines
                if buffer.count >= 262_144 { try flush() }
            }
            try flush()
            return 0
        }
        let file = try FileDraft(path, isReplacing: isReplacing)
        let report = try history.run(progress: progress) { try file.write($0) }
        try file.finish()
        if isTerminal { Console.talk("\r\u{1B}[K") }
        if call.isJSON {
            Console.json(report)
        } else {
            Console.output(
                "\(report.versions) versions by \(report.devices) devices, up to revision \(report.lastRevision), are in "
                    + "\(path.terminalSafe)\n")
        }
        return 0
    }
}
