import Foundation
import Postgres
import TestSupport
import Testing

/// A PostgreSQL that asks the role of the daemon for a password, and the folder with the files of it.
private struct GuardedDatabase {
    /// No password that anything else would hold.
    let secret: String
    let wrong: String
    let database: TestDatabase
    let folder: TestFolder
    /// How to connect, without the password.
    let conninfo: String

    init() throws {
        let word = UUID().uuidString.lowercased().replacing("-", with: "")
        (secret, wrong) = ("ri:gh\\t \(word)", "wrong-\(word)")
        database = try TestDatabase.migrated(on: TestCluster.start(durable: false))
        folder = try TestFolder("password")
        let role = "ALTER ROLE warden PASSWORD \(BlockingConnection.quoteLiteral(secret))"
        try database.cluster.administrate("CREATE ROLE warden SUPERUSER LOGIN; \(role)")
        let access = "\(database.cluster.cluster.folder)/data/pg_hba.conf"
        try "local all warden scram-sha-256\nlocal all all trust\n".write(
            toFile: access, atomically: false, encoding: .utf8)
        try database.cluster.administrate("SELECT pg_reload_conf()")
        conninfo = database.conninfo + " user=warden"
        let open = conninfo + " password=x"
        try eventually(60, "the server asks for passwords") {
            do throws(DatabaseError) {
                _ = try BlockingConnection(open)
                return false
            } catch {
                return error.sqlState == .invalidPassword
            }
        }
    }

    /// A file with a text.
    func file(_ name: String, _ text: String, mode: mode_t = 0o600) throws -> String {
        let path = "\(folder.path)/\(name)"
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        try #require(chmod(path, mode) == 0)
        return path
    }
}

/// Reads again and again what every user may read of all processes, and what this one may read of their environments.
private final class ProcessSpy: Sendable {
    private let seen = Shared((text: "", isOver: false, rounds: 0))

    init() {
        Thread.detachNewThread { [seen] in
            var known: Set<String> = []
            while !seen.current.isOver {
                let ids =
                    (try? FileManager.default.contentsOfDirectory(atPath: "/proc"))?.filter { Int($0) != nil } ?? []
                var fresh = ""
                for id in ids {
                    for file in ["cmdline", "environ"] where Int32(id) != getpid() {
                        guard let data = FileManager.default.contents(atPath: "/proc/\(id)/\(file)"), !data.isEmpty
                        else { continue }
                        let text = String(decoding: data, as: UTF8.self)
                        if known.insert(text).inserted { fresh += text + "\n" }
                    }
                }
                seen.change { state in
                    state.text += fresh
                    state.rounds += 1
                }
                usleep(2_000)
            }
        }
    }

    /// Whether it has seen a text.
    func hasSeen(_ text: String) -> Bool { seen.current.text.contains(text) }

    /// Ends looking, and gives what was seen.
    func end() -> String {
        let round = seen.current.rounds
        _ = try? seen.wait(20, for: "another look") { $0.rounds > round + 1 }
        return seen.change { state in
            state.isOver = true
            return state.text
        }
    }
}

@Suite("the database's password")
struct DatabasePasswordTests {
    @Test("stands in no log at any level, no process list or environment, and no error text, whatever fails")
    func nowhere() async throws {
        try await aside { try nowhereInTurn() }
    }

    private func nowhereInTurn() throws {
        let guarded = try GuardedDatabase()
        let (secret, conninfo) = (guarded.secret, guarded.conninfo)
        let file = try guarded.file("password", secret + "\n")
        let spy = ProcessSpy()
        var said = ""
        func run(
            _ status: Int32, _ words: [String], _ environment: [String: String], input: String? = nil
        ) throws -> String {
            let result = try Programs.run("ieumd", words, environment: environment, input: input)
            #expect(result.status == status, "\(words): \(result)")
            said += result.output + result.error + "\n"
            return result.output
        }
        let right = ["IEUM_DATABASE_PASSWORD_FILE": file, "IEUM_DATABASE_URL": conninfo]
        #expect(try run(0, ["players"], right).hasPrefix("PLAYER"))
        #expect(try run(0, ["migrate", "status"], right).contains("0001"))
        #expect(try run(0, ["migrate", "dump"], right).contains("CREATE TABLE public.players"))
        #expect(try run(0, ["psql", "-XAtc", "SELECT current_user"], right) == "warden\n")
        // What psql starts is given no more, and leaves no core.
        let limits = try run(
            0, ["psql", "-XAtc", #"\! grep core /proc/$PPID/limits; env | grep -c PGPASSWORD"#], right)
        #expect(
            limits.split(whereSeparator: \.isWhitespace).map(String.init) == [
                "Max", "core", "file", "size", "0", "0", "bytes", "0",
            ], "\(limits)")
        // From the environment it goes the same way.
        let inURL = ["IEUM_DATABASE_URL": conninfo + " password=\(ConnectionSettings.quote(secret))"]
        #expect(try run(0, ["psql", "-XAtc", "SELECT 1; SELECT pg_sleep(0.2)"], inURL).hasPrefix("1\n"))
        // psql tells its own: who looks from outside may come too late.
        let own = try run(0, ["psql", "-XAtc", #"\! env; tr '\000' ' ' </proc/$PPID/cmdline"#], inURL)
        #expect(own.contains("PATH=") && own.contains("passfile=") && own.contains("client_encoding="), "\(own)")

        let mistaken = [
            "IEUM_DATABASE_PASSWORD_FILE": try guarded.file("wrong", guarded.wrong), "IEUM_DATABASE_URL": conninfo,
        ]
        let serve = ["serve", "--listen", "127.0.0.1:0", "--metrics", "off", "--log", "debug"]
        let id = "3f2a9c01-7d5e-4c2b-9a41-0b6f3d2e8c17"
        for words in [
            serve, ["players"], ["export", id], ["forget", id, "--yes"], ["migrate", "up"], ["migrate", "dump"],
            ["restore-epoch"], ["prune", "--older-than", "1d"],
        ] {
            let status: Int32 = try Programs.run("ieumd", words, environment: mistaken).status
            #expect(status != 0, "\(words)")
            _ = try run(status, words, mistaken)
        }
        _ = try run(2, ["psql", "-c", "SELECT 1"], mistaken)
        let port = try FreePort.find()
        let closed = [
            "IEUM_DATABASE_PASSWORD_FILE": file, "IEUM_DATABASE_URL": "host=127.0.0.1 port=\(port) user=warden",
        ]
        for words in [serve, ["players"], ["migrate", "status"]] { _ = try run(4, words, closed) }
        _ = try run(2, ["psql", "-c", "SELECT 1"], closed)
        for broken in ["postgres://warden:\(secret)@[::1/x", "host=db password=\(secret) and more"] {
            for words in [serve, ["players"], ["psql", "-c", "SELECT 1"], ["migrate", "status"]] {
                let result = try Programs.run("ieumd", words, environment: ["IEUM_DATABASE_URL": broken])
                #expect(result.status != 0)
                said += result.output + result.error
            }
        }

        // A daemon whose password is another one from one moment to the next.
        let daemon = try DaemonProcess(
            database: conninfo, options: ["--log", "debug", "--request-timeout", "2"], environment: right)
        let client = try newPlayer(daemon).client
        #expect(try client.ask("PUSH g x base=0 {}").hasPrefix("OK "))
        // One after the other: within one transaction the old password would hold a moment longer than the sessions.
        try guarded.database.cluster.administrate("ALTER ROLE warden PASSWORD 'another'")
        try guarded.database.cluster.administrate(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'warden'")
        try eventually(60, "the daemon cannot sign in") { daemon.log.contains("password authentication failed") }
        let owner = try guarded.database.connect()
        try eventually(60, "its sessions have ended") {
            try owner.query("SELECT FROM pg_stat_activity WHERE usename = 'warden'").rowCount == 0
        }
        #expect(try client.ask("PUSH g x base=1 {}").hasPrefix("ERR unavailable "))
        try guarded.database.cluster.administrate(
            "ALTER ROLE warden PASSWORD \(BlockingConnection.quoteLiteral(secret))")
        try eventually(60, "it signs in again") { try client.ask("PUSH g x base=1 {}").hasPrefix("OK ") }
        said += daemon.log

        // A program that is soon over may have been looked past.
        try eventually(60, "the programs are seen") {
            _ = try run(0, ["migrate", "status"], right)
            return spy.hasSeen("migrate\0status")
        }
        let processes = spy.end()
        #expect(said.contains("password authentication failed"))
        // Environments hold what this test itself puts there: the programs' own, and no program's that they start.
        let foreign = processes.split(separator: "\n").filter { !$0.contains("IEUM_DATABASE_URL=") }.joined(
            separator: "\n")
        let word = String(secret.suffix(32))
        for (place, text) in [("a process", foreign), ("what was said", said)] {
            #expect(!text.contains(word), "the password stands in \(place)")
        }
    }

    @Test("a file that others may use, or that holds none, is refused with what to do; a flag takes no password")
    func files() throws {
        let guarded = try GuardedDatabase()
        func players(_ file: String) throws -> (status: Int32, output: String, error: String) {
            try Programs.run(
                "ieumd", ["players", "--database", guarded.conninfo], environment: ["IEUM_DATABASE_PASSWORD_FILE": file]
            )
        }
        for mode: mode_t in [0o644, 0o640, 0o604, 0o660, 0o602] {
            let file = try guarded.file("open", guarded.secret, mode: mode)
            let result = try players(file)
            #expect(result.status == 2 && result.error.contains("run: chmod 600 \(file)"), "\(result)")
        }
        for text in ["", "\n", "\n\(guarded.secret)\n"] {
            let result = try players(guarded.file("empty", text))
            #expect(result.status == 2 && result.error.contains("does not begin with a password"), "\(result)")
        }
        #expect(try players(guarded.folder.path + "/none").error.contains("No such file or directory"))
        #expect(try players(guarded.file("lines", "\(guarded.secret)\r\nmore\n", mode: 0o400)).status == 0)
        let flag = try Programs.run(
            "ieumd", ["players", "--database", guarded.conninfo + " password=\(guarded.wrong)"])
        #expect(flag.status == 2 && flag.error.contains("IEUM_DATABASE_PASSWORD_FILE"), "\(flag)")
        #expect(!flag.error.contains(guarded.wrong))
        // The key's password: no flag takes it either, and psql, which could only be given it openly, is not started.
        let key = " sslpassword=\(guarded.wrong)"
        for (words, environment) in [
            (["players", "--database", guarded.conninfo + key], [:]),
            (["psql", "--database", guarded.conninfo + key], [:]),
            (["psql", "-XAtc", "SELECT 1"], ["IEUM_DATABASE_URL": guarded.conninfo + key]),
        ] {
            let refused = try Programs.run("ieumd", words, environment: environment)
            #expect(refused.status == 2 && refused.error.contains("0600"), "\(words): \(refused)")
            #expect(!refused.error.contains(guarded.wrong) && refused.output == "", "\(words): \(refused)")
        }
    }
}
