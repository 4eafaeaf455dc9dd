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
        options.command = Migrator.CommandLine(program: "ieumd migrate")
        return Migrator(
            set: try MigrationSet(name: "ieum", embedded: EmbeddedMigrations.files), database: conninfo,
            options: options, report: report)
    }

    /// `ieumd migrate …`. Works on the database that is given, or else on the private one, which runs already or is
    /// started for the time of the command.
    static func run(_ arguments: [String], environment: [String: String]) -> Int32 {
        var started: PrivateDatabase?
        defer { started?.stop() }
        let command = MigrateCommand(
            program: "ieumd migrate", setName: "ieum", embedded: EmbeddedMigrations.files,
            applicationName: "ieumd-migrate", applicationVersion: SyncServerVersion.current
        ) { given in
            let choice = try DatabaseChoice(given: given, environment: environment)
            if let conninfo = choice.conninfo ?? PrivateDatabase.running(in: choice.directory) { return conninfo }
            let database = PrivateDatabase(directory: choice.directory)
            do throws(PrivateDatabaseError) {
                let conninfo = try database.start()
                started = database
                return conninfo
            } catch {
                throw MigrationError(.connection, error.message, hint: error.hint)
            }
        }
        return command.run(arguments)
    }
}
