import Foundation
import Postgres

/// The schema of a database as `pg_dump` writes it, in a form that only changes when the schema does.
enum SchemaDump {
    /// Runs `pg_dump --schema-only`. Nothing of the connection string is put on its command line, where others could read it.
    static func run(database: String) throws(MigrationError) -> String {
        let settings: ConnectionSettings
        do throws(DatabaseError) {
            settings = try ConnectionSettings(database)
        } catch {
            throw MigrationError(.usage, error.message, hint: error.hint)
        }
        var environment = ProcessInfo.processInfo.environment
        for (keyword, variable) in variables {
            if let value = settings[keyword] { environment[variable] = value }
        }
        var arguments = ["--schema-only", "--no-password"]
        // Newer releases write a random key into each dump unless they are given one.
        if try pgDump(["--help"], environment).contains("--restrict-key") {
            arguments.append("--restrict-key=migrator")
        }
        return try pgDump(arguments, environment)
            .split(separator: "\n", omittingEmptySubsequences: false)
            .filter {
                !$0.hasPrefix("-- Dumped from database version") && !$0.hasPrefix("-- Dumped by pg_dump version")
            }
            .joined(separator: "\n")
    }

    private static func pgDump(_ arguments: [String], _ environment: [String: String]) throws(MigrationError) -> String
    {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["pg_dump"] + arguments
        process.environment = environment
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        let text: Data
        let complaint: Data
        do {
            try process.run()
            // Its complaints are few and fit the pipe while the dump is read.
            text = try output.fileHandleForReading.readToEnd() ?? Data()
            complaint = try errors.fileHandleForReading.readToEnd() ?? Data()
        } catch {
            throw MigrationError(.connection, "cannot run pg_dump: \(error)")
        }
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let lines = String(decoding: complaint, as: UTF8.self).split(separator: "\n").map(String.init)
            throw MigrationError(
                .connection, "pg_dump failed: \(lines.first ?? "status \(process.terminationStatus)")",
                hint: process.terminationStatus == 127
                    ? "Install PostgreSQL's client programs." : lines.dropFirst().first)
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Source: PostgreSQL, chapter "libpq", section "Environment Variables".
    private static let variables: KeyValuePairs = [
        "host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER",
        "password": "PGPASSWORD", "passfile": "PGPASSFILE", "service": "PGSERVICE", "options": "PGOPTIONS",
        "sslmode": "PGSSLMODE", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY", "sslrootcert": "PGSSLROOTCERT",
        "sslcrl": "PGSSLCRL", "channel_binding": "PGCHANNELBINDING", "gssencmode": "PGGSSENCMODE",
        "krbsrvname": "PGKRBSRVNAME", "target_session_attrs": "PGTARGETSESSIONATTRS",
        "connect_timeout": "PGCONNECT_TIMEOUT",
    ]
}
