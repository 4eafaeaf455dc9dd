import Migrator
import SyncServer

/// Ieum's own migrations, embedded in the program.
enum Migrations {
    /// A migrator of the embedded set for a database.
    static func migrator(
        _ conninfo: String, report: @escaping (Event) -> Void
    ) throws(MigrationError) -> Migrator {
        var options = Migrator.Options()
        options.applicationName = "ieumd"
        options.applicationVersion = SyncServerVersion.current
        options.command = Migrator.CommandLine(program: "ieumd migrate")
        return Migrator(
            set: try MigrationSet(name: "ieum", embedded: EmbeddedMigrations.files), database: conninfo,
            options: options, report: report)
    }

    /// `ieumd migrate …`. Works on the database that is given, or else on the private one, which runs already or is
    /// started for the time of the command.
    static func run(_ arguments: [String], environment: [String: String]) -> Int32 {
        var command = MigrateCommand(
            program: "ieumd migrate", setName: "ieum", embedded: EmbeddedMigrations.files, applicationName: "ieumd",
            applicationVersion: SyncServerVersion.current, databaseOptions: DatabaseChoice.options
        ) { parsed, body in
            let choice = try DatabaseChoice(parsed, environment: environment)
            // Who only asks shall not get a new, empty one in a folder whose name was mistyped.
            if choice.isMissing, arguments.first != "up" || parsed.flag("dry-run") {
                throw MigrationError(
                    .connection, "there is no private PostgreSQL in \(choice.directory)",
                    hint: "Name its folder with --data-directory, or a PostgreSQL of yours with --database. "
                        + "A new one is made by ieumd serve and ieumd migrate up.")
            }
            do {
                return try choice.use(body)
            } catch let error as PrivateDatabaseError {
                throw MigrationError(error.isFolderUnfit ? .usage : .connection, error.message, hint: error.hint)
            }
        }
        command.environment = environment
        return command.run(arguments)
    }
}
