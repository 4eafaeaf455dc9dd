// The migrator's command line alone, for tests that need a process: they kill it, signal it and start several at once.

import Foundation
import Migrator

let command = MigrateCommand(
    program: "migrate-probe", setName: "probe", embedded: [("0001_probe.sql", "SELECT 1;")], applicationName: "probe",
    applicationVersion: "0.0.1"
) { arguments, body in
    guard let database = arguments.string("database") ?? ProcessInfo.processInfo.environment["PROBE_DATABASE"] else {
        throw MigrationError(.usage, "no database is named", hint: "Name it with --database.")
    }
    return body(database)
}
exit(command.run(Array(CommandLine.arguments.dropFirst())))
