import Arguments
import Foundation
import Postgres
import SyncServer

/// `ieumd prune`: removes old versions, beside running daemons.
struct PruneCommand {
    static let spec = CommandSpec(
        "ieumd prune", "remove old versions from the history; never a game's head",
        options: [
            OptionSpec(
                "older-than", "AGE", isRequired: true,
                help: "remove versions that arrived longer ago: a number with h, d or w, such as 90d"),
            OptionSpec(
                "keep", "N", default: "0", help: "keep each game's N newest versions, whatever their age"),
            OptionSpec("dry-run", help: "remove nothing, and say what would be removed"),
            OptionSpec("json", help: "say it as one JSON object"),
        ] + DatabaseChoice.options,
        examples: ["ieumd prune --older-than 90d --dry-run", "ieumd prune --older-than 26w --keep 3"],
        exitCodes: [
            (0, "done"), (2, "usage"), (4, "the database cannot be reached or changed; run it again, it goes on"),
        ])

    private let choice: DatabaseChoice
    private let age: Int64
    private let keep: Int32
    private let isDryRun: Bool
    private let isJSON: Bool

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        let parsed = try ParsedArguments(arguments, of: Self.spec, environment: environment)
        choice = try DatabaseChoice(parsed, environment: environment)
        let text = parsed.string("older-than") ?? ""
        guard let age = Age.microseconds(text) else {
            throw UsageError(
                "--older-than takes a whole number from 1 with h, d or w, up to 100 years, not \"\(text)\"",
                usage: Self.spec.usage)
        }
        self.age = age
        keep = Int32(try parsed.integer("keep", in: 0...1_000_000) ?? 0)
        isDryRun = parsed.flag("dry-run")
        isJSON = parsed.flag("json")
    }

    /// Prunes to the end and says what went.
    func run() -> Int32 {
        do throws(PrivateDatabaseError) {
            return try choice.use { conninfo in
                let progress = PruneProgress()
                do throws(DatabaseError) {
                    let report = try prune(conninfo, progress)
                    progress.end()
                    Console.output(isJSON ? json(report) : sentence(report))
                    return 0
                } catch {
                    progress.end()
                    Console.error(
                        "\(error)",
                        hint: DatabaseChoice.hint(error) ?? "What was removed stays removed. Run it again.")
                    return 4
                }
            }
        } catch {
            Console.error(error.message, hint: error.hint)
            return error.exitCode
        }
    }

    private func prune(_ conninfo: String, _ progress: PruneProgress) throws(DatabaseError) -> Retention.Report {
        var connection = try connect(conninfo)
        let now = try connection.query("SELECT clock_timestamp()").microsecondsSince1970(0, 0)
        var retention = Retention(olderThan: now - age, keep: keep, isDryRun: isDryRun)
        var failures = 0
        while true {
            do throws(DatabaseError) {
                guard try retention.step(on: connection) else { return retention.report }
                failures = 0
                progress.show(retention, verb: verb)
            } catch {
                // A page is one transaction: it was done or it was not, and doing it again does what is left.
                failures += 1
                guard failures < 5, error.isRetryable || error.sqlState == .lockNotAvailable else { throw error }
                Thread.sleep(forTimeInterval: 0.2 * Double(failures))
                if !connection.isConnected { connection = try connect(conninfo) }
            }
        }
    }

    private func connect(_ conninfo: String) throws(DatabaseError) -> BlockingConnection {
        try BlockingConnection(
            conninfo, applicationName: "ieumd prune",
            sessionSettings: ["lock_timeout": "5s", "client_min_messages": "warning"])
    }

    private var verb: String { isDryRun ? "would remove" : "removed" }

    private func sentence(_ report: Retention.Report) -> String {
        """
        \(verb) \(report.deleted) of \(report.seen) versions, \(report.octets) bytes of states, of \(report.players) players; \
        among them \(report.losers) that had lost a conflict and \(report.tombstones) tombstones

        """
    }

    private func json(_ report: Retention.Report) -> String {
        """
        {"dryRun":\(isDryRun),"seen":\(report.seen),"deleted":\(report.deleted),"octets":\(report.octets),\
        "players":\(report.players),"losers":\(report.losers),"tombstones":\(report.tombstones)}

        """
    }
}

/// One line on a terminal that is written over, or a line every few seconds.
private final class PruneProgress {
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private var last = ContinuousClock.now
    private var isDrawn = false

    func show(_ retention: Retention, verb: String) {
        let now = ContinuousClock.now
        guard now - last >= (isTerminal ? .milliseconds(200) : .seconds(5)) else { return }
        last = now
        let percent = Int(retention.fraction * 100)
        let text =
            "\(percent) % of the players, \(verb) \(retention.report.deleted) of \(retention.report.seen) versions"
        Console.talk(isTerminal ? "\r\u{1B}[K\(text)" : "\(text)\n")
        isDrawn = isTerminal
    }

    func end() {
        if isDrawn { Console.talk("\r\u{1B}[K") }
        isDrawn = false
    }
}
