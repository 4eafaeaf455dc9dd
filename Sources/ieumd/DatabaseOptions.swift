import Arguments
import Foundation
import SyncServer

/// Which PostgreSQL a command works on: the one that was given, or the daemon's private one.
struct DatabaseChoice {
    /// The options that every command with a database takes.
    static let options = [
        OptionSpec(
            "database", "CONNINFO", environment: "IEUM_DATABASE_URL",
            help: "a PostgreSQL of yours, as a libpq connection string or URI"),
        OptionSpec(
            "data-directory", "DIR", environment: "IEUM_DATA_DIRECTORY",
            help: "where the private PostgreSQL lives when no database is given"),
    ]

    /// The connection string; nil means the private PostgreSQL.
    let conninfo: String?
    /// Absolute.
    let directory: String

    /// Reads the options, and the password's file where `IEUM_DATABASE_PASSWORD_FILE` names one.
    init(_ parsed: ParsedArguments, environment: [String: String]) throws(UsageError) {
        conninfo = parsed.string("database")
        let directory = parsed.string("data-directory") ?? Self.standardDirectory(environment)
        self.directory = URL(fileURLWithPath: directory).standardizedFileURL.path
        guard let file = environment["IEUM_DATABASE_PASSWORD_FILE"], !file.isEmpty else { return }
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
            throw UsageError("the file \(file) that IEUM_DATABASE_PASSWORD_FILE names cannot be read")
        }
        // libpq takes the password from its environment, and so does a psql that we start; no argument shows it.
        setenv("PGPASSWORD", text.trimmingCharacters(in: .newlines), 1)
    }

    static func standardDirectory(_ environment: [String: String]) -> String {
        if geteuid() == 0 { return "/var/lib/ieum" }
        if let data = environment["XDG_DATA_HOME"], data.hasPrefix("/") { return data + "/ieum" }
        return (environment["HOME"] ?? NSHomeDirectory()) + "/.local/share/ieum"
    }

    /// Whether the private PostgreSQL is meant and was never made.
    var isMissing: Bool {
        conninfo == nil && access(directory + "/postgres/data", F_OK) != 0 && errno == ENOENT
            && PrivateDatabase.running(in: directory) == nil
    }

    /// Runs a body with the database's connection string. A private PostgreSQL that runs already is used; otherwise it
    /// is started for the time of the body.
    func use(_ body: (_ conninfo: String) -> Int32) throws(PrivateDatabaseError) -> Int32 {
        if let conninfo { return body(conninfo) }
        if let running = PrivateDatabase.running(in: directory) { return body(running) }
        let database = PrivateDatabase(directory: directory)
        let conninfo = try database.start()
        defer { database.stop() }
        return body(conninfo)
    }
}
