import Arguments
import Foundation
import Postgres
import SyncServer

/// `ieumd restore-epoch`: names a new life of the database, so that devices offer again what a backup had lost.
struct RestoreEpochCommand {
    static let spec = CommandSpec(
        "ieumd restore-epoch", "begin a new epoch, after a backup was restored", options: DatabaseChoice.options,
        examples: ["ieumd restore-epoch"],
        exitCodes: [(0, "done"), (2, "usage"), (4, "the database cannot be reached or changed")])

    private let choice: DatabaseChoice

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        choice = try DatabaseChoice(
            ParsedArguments(arguments, of: Self.spec, environment: environment), environment: environment)
    }

    /// Writes the epoch and says what follows from it.
    func run() -> Int32 {
        do throws(PrivateDatabaseError) {
            return try choice.use { conninfo in
                do throws(DatabaseError) {
                    let connection = try BlockingConnection(conninfo, applicationName: "ieumd restore-epoch")
                    let rows = try connection.query(
                        "UPDATE server SET epoch = gen_random_uuid(), since = now() RETURNING epoch::text")
                    let epoch = try rows.rowCount == 1 ? rows.text(0, 0) : ""
                    // A dump that was restored without privileges has lost the daemon's, and gave everybody theirs.
                    if try !connection.query("SELECT to_regprocedure('grant_rights_to_daemon()')").isNull(0, 0) {
                        try connection.query("SELECT grant_rights_to_daemon()")
                    }
                    Console.output("epoch \(epoch)\n")
                    Console.error("devices will pull everything and offer every game that they hold", hint: nil)
                    return 0
                } catch {
                    Console.error("\(error)", hint: DatabaseChoice.hint(error))
                    return 4
                }
            }
        } catch {
            Console.error(error.message, hint: error.hint)
            return error.exitCode
        }
    }
}
