import Foundation
import TestSupport
import Testing

@testable import Migrator
@testable import Postgres

/// A streaming standby of a cluster, in a folder of its own.
private final class Standby {
    let folder: TestFolder
    private let programs: String
    private let user: SystemUser
    private var server: Process?

    init(of primary: TestCluster) throws {
        folder = try TestFolder("standby", inMemory: true)
        // Beside the server itself, where its name in a folder of the PATH is a link.
        let postgres = URL(filePath: try ServerPrograms.find(in: nil).postgres).resolvingSymlinksInPath()
        programs = postgres.deletingLastPathComponent().path
        // PostgreSQL does not run as root.
        user = SystemUser.isRoot ? try #require(SystemUser(named: "postgres") ?? SystemUser(named: "nobody")) : .current
        chown(folder.path, user.userID, user.groupID)
        chmod(folder.path, 0o711)
        let backup = try start([
            "pg_basebackup", "-d", primary.conninfo(), "-D", data, "-R", "-c", "fast", "-X", "stream", "--no-sync",
        ])
        backup.waitUntilExit()
        guard backup.terminationStatus == 0 else { throw failure("pg_basebackup failed") }
        // Not by pg_ctl: its child would keep open what Process waits for.
        server = try start(
            ["postgres", "-D", data, "-k", folder.path]
                + ["listen_addresses=", "fsync=off", "max_connections=1000"].flatMap { ["-c", $0] })
        let deadline = ContinuousClock.now + .seconds(60)
        while (try? BlockingConnection(conninfo("postgres"))) == nil {
            guard server?.isRunning == true, ContinuousClock.now < deadline else {
                throw failure("the standby did not start")
            }
            usleep(5000)
        }
    }

    deinit {
        guard let server, server.isRunning else { return }
        kill(server.processIdentifier, SIGQUIT)
        server.waitUntilExit()
    }

    func conninfo(_ database: String) -> String { "host=\(folder.path) port=5432 user=postgres dbname=\(database)" }

    private var data: String { "\(folder.path)/data" }
    private var log: String { "\(folder.path)/log" }

    private func start(_ command: [String]) throws -> Process {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = user.commandPrefix + ["\(programs)/\(command[0])"] + command.dropFirst()
        process.currentDirectoryURL = URL(filePath: "/")
        let said = try FileHandle(forWritingTo: Self.emptyFile(log))
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = said
        process.standardError = said
        try process.run()
        return process
    }

    private func failure(_ what: String) -> ProbeError {
        ProbeError(description: "\(what): \((try? String(contentsOfFile: log, encoding: .utf8)) ?? "")")
    }

    private static func emptyFile(_ path: String) throws -> URL {
        try Data().write(to: URL(filePath: path))
        return URL(filePath: path)
    }
}

@Suite("A standby")
struct StandbyTests {
    @Test("up says that the server is a standby and exits 4; status answers, and follows the primary")
    func standby() throws {
        let primary = try TestCluster.start(
            durable: false, settings: ["wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"])
        let bench = try Bench(["1_a.sql": "CREATE TABLE a ();"], on: primary)
        #expect(try bench.up() == ["1_a.sql"])
        let standby = try Standby(of: primary)
        let database = standby.conninfo(bench.database.name)
        func run(_ words: String...) throws -> Probe.Result {
            try Probe(words + ["--dir", bench.path, "--set", "test"], database: database).wait()
        }
        let current = try run("up")
        #expect(current.status == 0 && current.output == "up to date\n", "\(current)")

        try bench.write("2_b.sql", "CREATE TABLE b ();")
        let refused = try run("up")
        #expect(refused.status == 4, "\(refused)")
        #expect(refused.errors.contains("25006") && refused.errors.contains("the server is a standby"), "\(refused)")
        #expect(refused.errors.contains("Connect to the primary"), "\(refused)")
        #expect(try run("status", "--check").status == 6)
        let last = try #require(Version("2"))
        for command in ["baseline", "repair"] { #expect(try run(command, "\(last)").status != 0) }

        // Replayed in order: what the primary has now, the standby has when it has replayed that far.
        #expect(try bench.up() == ["2_b.sql"])
        let position = try bench.value("SELECT pg_current_wal_flush_lsn()")
        let session = try BlockingConnection(database)
        let deadline = ContinuousClock.now + .seconds(60)
        while try session.execute("SELECT pg_last_wal_replay_lsn() >= '\(position)'").last?.text(0, 0) != "t" {
            try #require(ContinuousClock.now < deadline)
            usleep(5000)
        }
        #expect(try run("status", "--check").status == 0)
    }
}
