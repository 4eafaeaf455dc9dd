import Foundation
import TestSupport
import Testing

@testable import Migrator
@testable import Postgres

/// A PgBouncer in front of a test's server.
private final class Pooler {
    private let folder: TestFolder
    private let server: Process

    /// Where Debian puts it, and the PATH.
    static let program: String? = {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        return (path.split(separator: ":").map(String.init) + ["/usr/sbin"]).map { "\($0)/pgbouncer" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    init(mode: String, ignoresOptions: Bool, _ database: TestDatabase) throws {
        folder = try TestFolder("pooler")
        let behind = try ConnectionSettings(database.conninfo)
        let places = ["host", "port", "user"].compactMap { name in behind[name].map { "\(name)=\($0)" } }
        let configuration = """
            [databases]
            * = \(places.joined(separator: " "))
            [pgbouncer]
            listen_addr =
            listen_port = 6432
            unix_socket_dir = \(folder.path)
            auth_type = any
            pool_mode = \(mode)
            \(ignoresOptions ? "ignore_startup_parameters = options" : "")
            """
        try Data(configuration.utf8).write(to: URL(filePath: "\(folder.path)/ini"))
        // It does not run as root.
        let user =
            SystemUser.isRoot ? try #require(SystemUser(named: "postgres") ?? SystemUser(named: "nobody")) : .current
        chown(folder.path, user.userID, user.groupID)
        server = Process()
        server.executableURL = URL(filePath: "/usr/bin/env")
        server.arguments = user.commandPrefix + [try #require(Self.program), "\(folder.path)/ini"]
        server.currentDirectoryURL = URL(filePath: "/")
        server.standardOutput = FileHandle.nullDevice
        server.standardError = FileHandle.nullDevice
        try server.run()
        let deadline = ContinuousClock.now + .seconds(60)
        while (try? BlockingConnection(conninfo(database))) == nil {
            try #require(server.isRunning && ContinuousClock.now < deadline)
            usleep(5000)
        }
    }

    deinit {
        kill(server.processIdentifier, SIGKILL)
        server.waitUntilExit()
    }

    func conninfo(_ database: TestDatabase) -> String {
        "host=\(folder.path) port=6432 user=postgres dbname=\(database.name)"
    }
}

@Suite("Behind PgBouncer", .enabled(if: Pooler.program != nil, "install the package pgbouncer"))
struct PoolerTests {
    private let bench: Bench

    init() throws {
        // What the second file asserts would not hold if the settings that its session begins with were lost.
        bench = try Bench([
            "1_a.sql": "CREATE TABLE a (x int);",
            "2_b.sql": """
            DO $$ BEGIN
                ASSERT current_setting('lock_timeout') = '7s', current_setting('lock_timeout');
                ASSERT current_setting('statement_timeout') = '1min', current_setting('statement_timeout');
            END $$;
            """,
            "3_c.sql": "-- migrate: no-transaction\nCREATE INDEX CONCURRENTLY a_x ON a (x);\n\(Gate.statement(1))",
        ])
    }

    private func start(_ command: String, _ pooler: Pooler, _ arguments: String...) throws -> Probe {
        try Probe(
            [command, "--dir", bench.path, "--set", "test"] + arguments, database: pooler.conninfo(bench.database))
    }

    @Test(
        "one that takes no start-up options is told apart, with what to do, and exits 4",
        arguments: ["transaction", "session"])
    func refusesOptions(mode: String) throws {
        let pooler = try Pooler(mode: mode, ignoresOptions: false, bench.database)
        for command in ["up", "status"] {
            let result = try start(command, pooler).wait()
            #expect(result.status == 4, "\(result)")
            #expect(result.errors.contains("unsupported startup parameter: options"), "\(result)")
            #expect(result.errors.contains("HINT: A pooler stands between here and the server"), "\(result)")
            #expect(result.errors.contains("Connect to the server itself"), "\(result)")
        }
    }

    @Test("in transaction mode no lock holds: nothing is run, exit 4", arguments: ["transaction", "statement"])
    func transactionMode(mode: String) throws {
        let pooler = try Pooler(mode: mode, ignoresOptions: true, bench.database)
        for _ in 1...2 {
            let result = try start("up", pooler).wait()
            #expect(result.status == 4 && result.output.isEmpty, "\(result)")
            #expect(result.errors.contains("error: a pooler in transaction mode stands between here and the server"))
            #expect(result.errors.contains("HINT: Connect to the server itself"), "\(result)")
        }
        #expect(try bench.value("SELECT to_regclass('a') IS NULL AND to_regclass('schema_migrations') IS NULL") == "t")
        #expect(
            try bench.value(
                """
                SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                """) == "0")
        // Looking needs no lock.
        #expect(try start("status", pooler, "--check").wait().status == 6)
    }

    @Test("in session mode it works, with a warning: the lock holds, and so do the time limits of the files")
    func sessionMode() throws {
        let pooler = try Pooler(mode: "session", ignoresOptions: true, bench.database)
        let gate = try Gate(1, bench)
        let first = try start("up", pooler, "--lock-timeout", "7s", "--statement-timeout", "60s")
        _ = try gate.waitForArrival()
        let impatient = try start("up", pooler, "--lock-wait", "0").wait()
        #expect(impatient.status == 5, "\(impatient)")
        let patient = try start("up", pooler)
        try gate.open()
        let result = try first.wait()
        #expect(result.status == 0, "\(result)")
        #expect(result.errors.hasPrefix("warning: a pooler stands between here and the server."), "\(result)")
        let second = try patient.wait()
        #expect(second.status == 0 && second.output == "up to date\n", "\(second)")
        #expect(try bench.history.count == 3)
    }
}
