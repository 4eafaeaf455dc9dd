import Foundation
import Postgres
import TestSupport
import Testing

@Suite("PostgreSQL away")
struct OutageTests {
    @Test("sessions stay, commands wait and are told to come back, and all works again without a restart")
    func away() throws {
        let cluster = try TestCluster.start(durable: false)
        let database = try TestDatabase.migrated(on: cluster)
        let daemon = try DaemonProcess(
            database: database.conninfo, metrics: "127.0.0.1:0", options: ["--request-timeout", "2"])
        let monitoring = try daemon.metricsPort()
        let (client, token) = try newPlayer(daemon)
        let watcher = try RawClient(port: daemon.port)
        _ = try watcher.ask("LOGIN \(token)")
        _ = try watcher.ask("WATCH since=0")
        #expect(try client.ask("PUSH g x base=0 {\"n\":1}").hasPrefix("OK outcome=created "))
        #expect(try watcher.line() == "* CHANGED revision=1")
        #expect(try httpStatus(port: monitoring, path: "/readyz") == 200)

        cluster.cluster.stop()
        let begin = ContinuousClock.now
        try client.send("PUSH g x base=1 {\"n\":2}\nPULL since=0\nPING\nTIME")
        #expect(try client.reply(timeout: 60).last?.hasPrefix("ERR unavailable retry-after=") == true)
        #expect(ContinuousClock.now - begin > .seconds(1), "the push did not wait")
        #expect(try client.reply(timeout: 60).last?.hasPrefix("ERR unavailable retry-after=") == true)
        #expect(try client.reply().last == "OK")
        #expect(try client.reply().last?.hasPrefix("OK time=") == true)
        let late = try RawClient(port: daemon.port)
        #expect(try late.ask("LOGIN \(token)", timeout: 60).hasPrefix("ERR unavailable retry-after="))
        #expect(try late.ask("REGISTER", timeout: 60).hasPrefix("ERR unavailable retry-after="))
        #expect(try httpStatus(port: monitoring, path: "/readyz") == 503)
        #expect(try httpStatus(port: monitoring, path: "/healthz") == 200)

        try cluster.cluster.start()
        let push = "PUSH g x saved=2026-11-29T12:00:00Z base=1 {\"n\":3}"
        var answer = ""
        try eventually(60, "pushes work again") {
            answer = try client.ask(push, timeout: 60)
            return answer.hasPrefix("OK ")
        }
        #expect(fields(answer)["revision"] == "2")
        #expect(try watcher.line(timeout: 60) == "* CHANGED revision=2")
        try eventually(60, "sign-ins work again") { try late.ask("LOGIN \(token)", timeout: 60).hasPrefix("OK ") }
        try eventually(60, "the daemon is ready") { try httpStatus(port: monitoring, path: "/readyz") == 200 }
        #expect(daemon.stop() == 0)
    }

    @Test(
        "a database that takes no changes is away for pushes, not for pulls; when it takes them again, so does the daemon"
    )
    func readOnly() async throws {
        try await aside {
            let cluster = try TestCluster.start(durable: false)
            let database = try TestDatabase.migrated(on: cluster)
            let daemon = try DaemonProcess(database: database.conninfo, options: ["--request-timeout", "2"])
            let (client, token) = try newPlayer(daemon)
            #expect(try client.ask("PUSH g x base=0 {}").hasPrefix("OK outcome=created "))
            let other = try BlockingConnection(try cluster.conninfo(database: "postgres"))
            // What sessions begin with: those that there are end.
            let sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'ieumd%'"
            try other.execute("ALTER DATABASE \(database.name) SET default_transaction_read_only = on")
            try other.execute(sessions)

            try eventually(60, "pushes are told that the database is away") {
                try client.ask("PUSH g x base=1 saved=2026-11-29T12:00:00Z {\"n\":2}", timeout: 60)
                    .hasPrefix("ERR unavailable retry-after=")
            }
            let late = try RawClient(port: daemon.port)
            #expect(try late.ask("REGISTER", timeout: 60).hasPrefix("ERR unavailable retry-after="))
            #expect(try late.ask("LOGIN \(token)", timeout: 60).hasPrefix("OK "))
            #expect(try late.ask("PULL since=0", timeout: 60).hasPrefix("END cursor=1"))
            #expect(!daemon.log.contains("event=push-failed"))

            // New sessions would do; the daemon has to think of them by itself.
            try other.execute("ALTER DATABASE \(database.name) RESET default_transaction_read_only")
            try eventually(60, "pushes work again") {
                try client.ask("PUSH g x base=1 saved=2026-11-29T12:00:00Z {\"n\":2}", timeout: 60).hasPrefix("OK ")
            }
            try eventually(60, "sign-ups work again") {
                try RawClient(port: daemon.port).ask("REGISTER", timeout: 60).hasPrefix("OK ")
            }
        }
    }

    @Test("a command that PostgreSQL has and does not answer is given up in time, and the next one works")
    func blocked() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo, options: ["--request-timeout", "1"])
        let (client, _) = try newPlayer(daemon)
        let other = try BlockingConnection(database.conninfo)
        _ = try other.execute("BEGIN; UPDATE players SET last_revision = last_revision")
        let begin = ContinuousClock.now
        #expect(try client.ask("PUSH g x base=0 {\"n\":1}", timeout: 60).hasPrefix("ERR unavailable retry-after="))
        // Without the limit, PostgreSQL's silence was noticed after 30 seconds.
        #expect(ContinuousClock.now - begin < .seconds(20))
        _ = try other.execute("ROLLBACK")
        var answer = ""
        for _ in 0..<30 where !answer.hasPrefix("OK ") {
            answer = try client.ask("PUSH g x base=0 saved=2026-11-29T12:00:00Z {\"n\":1}", timeout: 60)
        }
        #expect(answer.hasPrefix("OK outcome="))
    }
}
