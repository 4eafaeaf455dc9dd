import Arguments
import Foundation
import Postgres
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
    /// Keeps the password that ``conninfo`` points to.
    private let passFile: PassFile?

    /// Reads the options, and the password's file where `IEUM_DATABASE_PASSWORD_FILE` names one.
    init(_ parsed: ParsedArguments, environment: [String: String]) throws(UsageError) {
        try Self.refusePassword(in: parsed.given("database"))
        let directory = parsed.string("data-directory") ?? Self.standardDirectory(environment)
        self.directory = URL(fileURLWithPath: directory).standardizedFileURL.path
        guard let file = environment["IEUM_DATABASE_PASSWORD_FILE"], !file.isEmpty,
            let database = parsed.string("database"), var settings = try? ConnectionSettings(database)
        else {
            conninfo = parsed.string("database")
            passFile = nil
            return
        }
        let passFile = try PassFile(readingFrom: file)
        settings["passfile"] = passFile.path
        self.passFile = passFile
        conninfo = settings.conninfo
        // This one would win over the file.
        unsetenv("PGPASSWORD")
    }

    /// Everybody on this machine reads command lines.
    private static func refusePassword(in given: String?) throws(UsageError) {
        guard let settings = given.flatMap({ try? ConnectionSettings($0) }) else { return }
        guard settings["password"] == nil, settings["sslpassword"] == nil else {
            throw UsageError(
                "everybody on this machine can read a password on the command line: write it into a file of mode 0600 "
                    + "and name that by IEUM_DATABASE_PASSWORD_FILE")
        }
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
