import Foundation
import Postgres
import TestSupport
import Testing

@Suite("ieumd")
struct ProgramTests {
    @Test("serve says on standard output where it listens, and nothing else, on a private PostgreSQL of its own")
    func firstLine() throws {
        let folder = try TestFolder("first-line")
        let daemon = try DaemonProcess(directory: URL(fileURLWithPath: folder.path))
        #expect(daemon.firstLine == "listening on 127.0.0.1:\(daemon.port)")
        #expect(try RawClient(port: daemon.port).ask("REGISTER").hasPrefix("OK "))
        // psql and migrate find the private PostgreSQL while it runs,
        let place = ["--data-directory", folder.path]
        let count = ["--", "-XAtc", "SELECT count(*) FROM players"]
        let running = try Programs.run("ieumd", ["psql"] + place + count)
        #expect(running.status == 0, "\(running.error)")
        #expect(running.output == "1\n")
        let status = try Programs.run("ieumd", ["migrate", "status"] + place)
        #expect(status.status == 0, "\(status.error)")
        #expect(status.output.contains("0001_server.sql"))
        #expect(daemon.stop() == 0)
        #expect(daemon.restOfOutput() == "")
        // and start it for the time of a command while it does not.
        let stopped = try Programs.run("ieumd", ["psql"] + place + count)
        #expect(stopped.status == 0, "\(stopped.error)")
        #expect(stopped.output == "1\n")
        #expect(try Programs.run("ieumd", ["psql"] + place + ["--", "-XAtc", "SELECT nonsense"]).status == 1)
    }

    @Test("after kill -9 of the daemon its PostgreSQL ends, and the next daemon takes the directory over")
    func orphans() throws {
        let folder = try TestFolder("orphans")
        let directory = URL(fileURLWithPath: folder.path)
        let daemon = try DaemonProcess(directory: directory)
        let token = try newPlayer(daemon).token
        let postmaster = try #require(daemon.postmaster)
        daemon.kill()
        try eventually(60, "PostgreSQL ends") { kill(postmaster, 0) != 0 }
        let next = try DaemonProcess(directory: directory)
        #expect(try RawClient(port: next.port).ask("LOGIN \(token)").hasPrefix("OK "))
    }

    @Test("version and help answer on standard output")
    func help() throws {
        let version = try Programs.run("ieumd", ["version"])
        #expect(version.status == 0)
        #expect(version.output == "ieumd 0.1.0\n")
        for arguments in [["help"], ["--help"], ["help", "serve"], ["serve", "--help"], ["help", "migrate"]] {
            let help = try Programs.run("ieumd", arguments)
            #expect(help.status == 0)
            #expect(help.output.contains("Usage:"), "\(arguments): \(help.output)")
            #expect(help.error == "")
        }
        #expect(try Programs.run("ieumd", []).status == 2)
    }

    @Test("data that cannot be written is told, and ends a command with 1")
    func unwritten() throws {
        func call(_ words: String) throws -> (status: Int32, output: String, error: String) {
            try Programs.runInstalled(["/bin/sh", "-c", "exec \"$0\" \(words)", Programs.url("ieumd").path])
        }
        for words in ["version >/dev/full", "help serve >/dev/full", "help >/dev/full"] {
            let result = try call(words)
            #expect(result.status == 1, "\(words)")
            #expect(result.error == "ieumd: stdout cannot be written: No space left on device\n", "\(words)")
        }
        #expect(try call("version >&-").status == 1)
        #expect(try call("version <&- >&- 2>&-").status == 1)
        #expect(try call("version <&- 2>&-").status == 0)
    }

    @Test("migrate up brings an empty database up to date, and doing it again does nothing")
    func migrate() throws {
        let database = try TestDatabase.make()
        let place = ["--database", database.conninfo]
        #expect(try Programs.run("ieumd", ["migrate", "up"] + place).status == 0)
        let again = try Programs.run("ieumd", ["migrate", "up"] + place)
        #expect(again.status == 0)
        let status = try Programs.run("ieumd", ["migrate", "status"] + place)
        #expect(status.status == 0)
        let epoch = try Programs.run("ieumd", ["psql"] + place + ["--", "-XAtc", "SELECT epoch FROM server"])
        let daemon = try DaemonProcess(database: database.conninfo)
        let greeting = try RawClient(port: daemon.port, readsGreeting: false).line() ?? ""
        #expect((fields(greeting)["epoch"] ?? "") + "\n" == epoch.output)
    }

    @Test("metrics, healthz and readyz answer on a port of their own")
    func monitoring() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo, metrics: "127.0.0.1:0")
        let port = try daemon.metricsPort()
        let (client, _) = try newPlayer(daemon)
        #expect(try client.ask("PUSH g x {\"n\":1}").hasPrefix("OK "))
        #expect(try httpStatus(port: port, path: "/healthz") == 200)
        #expect(try httpStatus(port: port, path: "/readyz") == 200)
        #expect(try httpStatus(port: port, path: "/nothing") == 404)
        let text = try http(port: port, path: "/metrics").body
        #expect(text.contains("ieum_pushes_total{outcome=\"created\"} 1\n"))
        #expect(try metric("ieum_connections", port: port) == 1)
        #expect(try metric("ieum_sign_ins_total", port: port) == 1)
        for bad in ["NONSENSE", "PUSH g x {", "PUSH g x base=99 saved=2026-11-29T12:00:00Z", "GET g nowhere"] {
            #expect(try client.ask(bad).hasPrefix("ERR "))
        }
        #expect(try metric("ieum_errors_total", port: port) == 4)
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let name = line.prefix { $0 != " " && $0 != "{" }
            #expect(text.contains("# HELP \(name) "))
            #expect(text.contains("# TYPE \(name) "))
        }
        #expect(try RawClient(port: daemon.port).ask("GET /metrics").hasPrefix("ERR "))
    }

    @Test("no token, code or state ever stands in the log, not even at debug")
    func secrecy() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(
            database: database.conninfo, options: ["--log", "debug", "--request-timeout", "1"])
        let phone = try RawClient(port: daemon.port)
        let token = try #require(fields(try phone.ask("REGISTER device=phone"))["token"])
        let code = try #require(fields(try phone.ask("PAIR"))["code"])
        let tablet = try RawClient(port: daemon.port)
        let second = try #require(fields(try tablet.ask("LINK \(code) device=tablet"))["token"])
        _ = try RawClient(port: daemon.port).ask("LOGIN \(token)")
        _ = try RawClient(port: daemon.port).ask("LOGIN \(token.dropLast(3))AAA")
        _ = try RawClient(port: daemon.port).ask("LINK \(code)")
        _ = try phone.ask("PUSH g x {\"marker\":\"state-of-a-game\"}")
        _ = try phone.ask("PUSH g x {\"marker\":\"state-of-a-game\"")
        _ = try phone.ask("state-of-a-game \(token) \(code)")
        // What the database says of failures must not bring it in either.
        try database.connect().execute("ALTER TABLE game_versions RENAME TO game_versions_away")
        #expect(try phone.ask("PUSH g y {\"marker\":\"state-of-a-game\"}").hasPrefix("ERR internal "))
        #expect(try phone.ask("GET g x").hasPrefix("ERR internal "))
        #expect(daemon.stop() == 0)
        let log = daemon.log
        #expect(log.contains("event=push-failed"))
        let secrets = [token, second].map { String($0.split(separator: ".")[2]) }
        for secret in secrets + [code, code.replacing("-", with: ""), "state-of-a-game"] {
            #expect(!log.contains(secret), "\(secret)")
        }
    }
}
