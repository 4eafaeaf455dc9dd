import Arguments
import Foundation
import SyncServer

/// `ieumd psql`: opens psql on the daemon's database.
struct PsqlCommand {
    static let spec = CommandSpec(
        "ieumd psql", "open psql on the database; what follows -- goes to psql", positionals: ["[psql arguments…]"],
        options: DatabaseChoice.options,
        examples: ["ieumd psql", "ieumd psql -- -c 'TABLE conflicts'"],
        exitCodes: [(0, "psql ended well"), (2, "usage"), (4, "the database cannot be reached")])

    private let choice: DatabaseChoice
    private let arguments: [String]

    /// Checks the arguments; those after `--` are psql's.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        let split = arguments.firstIndex(of: "--") ?? arguments.endIndex
        var spec = Self.spec
        spec.positionals = []
        let parsed = try ParsedArguments(arguments[..<split], of: spec, environment: environment)
        choice = try DatabaseChoice(parsed, environment: environment)
        self.arguments = Array(arguments[split...].dropFirst())
    }

    /// Runs psql and gives its exit code.
    func run() -> Int32 {
        do throws(PrivateDatabaseError) {
            return try choice.use { conninfo in
                let process = Process()
                process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
                process.arguments = ["psql", "-d", conninfo] + arguments
                // The terminal's Ctrl-C is psql's: it cancels a query there.
                signal(SIGINT, SIG_IGN)
                do {
                    try process.run()
                } catch {
                    Console.error("psql cannot be run: \(error)", hint: "Install it: apt-get install postgresql-client")
                    return 1
                }
                process.waitUntilExit()
                return process.terminationStatus
            }
        } catch {
            Console.error(error.message, hint: error.hint)
            return 4
        }
    }
}
