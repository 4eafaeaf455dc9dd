import Migrator
import SyncServer

/// Ieum's own migrations, embedded in the program.
enum Migrations {
    /// A migrator of the embedded set for a database.
    static func migrator(
        _ conninfo: String, report: @escaping (Event) -> Void
    ) throws(MigrationError) -> Migrator {
        var options = Migrator.Options()
        options.applicationName = "ieumd-migrate"
        options.applicationVersion = SyncServerVersion.current
        options.command = "ieumd migrate"
        return Migrator(
            set: try MigrationSet(name: "ieum", embedded: EmbeddedMigrations.files), database: conninfo,
            options: options, report: report)
    }

    /// `ieumd migrate up` and `ieumd migrate status`, on a database that is given.
    static func run(_ arguments: [String], environment: [String: String]) -> Int32 {
        guard let command = arguments.first, let index = arguments.firstIndex(of: "--database"),
            arguments.indices.contains(index + 1)
        else {
            Console.error("usage: ieumd migrate up|status --database CONNINFO", hint: nil)
            return 2
        }
        do throws(MigrationError) {
            let migrator = try migrator(arguments[index + 1]) { _ in }
            if command == "up" {
                for file in try migrator.up().applied { Console.output("\(file.name) \(file.milliseconds) ms\n") }
            } else {
                for row in try migrator.status().rows { Console.output("\(row.name) \(row.state.rawValue)\n") }
            }
            return 0
        } catch {
            Console.error("\(error)", hint: nil)
            return error.exitCode
        }
    }
}
