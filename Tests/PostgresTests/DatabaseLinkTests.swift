import EventLoop
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Link")
struct DatabaseLinkTests {
    let driver: LoopDriver

    init() throws {
        driver = try LoopDriver()
    }

    @Test("a terminated listener listens again and hears what comes after, within 2 s")
    func relisten() throws {
        let database = try TestDatabase.make()
        let link = try DatabaseLink(
            on: driver.loop, ConnectionSettings(database.conninfo), setup: ["LISTEN news", "SET lock_timeout = '5s'"],
            backoff: Backoff(base: .milliseconds(10)))
        var heard: [String] = []
        var events: [String] = []
        link.onNotification = { _, payload, _ in heard.append(payload) }
        link.onReady = { _ in events.append("ready") }
        link.onLost = { _ in events.append("lost") }
        #expect(link.state == .stopped && link.connection == nil)
        link.start()
        #expect(link.state == .connecting)
        driver.wait { events == ["ready"] }
        let sender = try database.connect()
        try sender.execute("NOTIFY news, 'one'")
        driver.wait { heard == ["one"] }
        let isSoonBack = try isInTime(.seconds(2)) {
            let before = driver.loop.now
            (events, heard) = (["ready"], [])
            let pid = try #require(link.connection).backendPID
            try sender.execute("SELECT pg_terminate_backend(\(pid), 10000); NOTIFY news, 'lost in between'")
            driver.wait { events == ["ready", "lost", "ready"] }
            try sender.execute("NOTIFY news, 'two'")
            driver.wait { heard.last == "two" }
            #expect(link.connection?.backendPID != pid)
            return driver.loop.now - before
        }
        #expect(isSoonBack)
        let connection = try #require(link.connection)
        #expect(try driver.execute(connection, "SELECT current_setting('lock_timeout')").text(0, 0) == "5s")
        link.stop()
        #expect(link.state == .stopped && link.connection == nil)
    }

    @Test("a link waits for a server that comes late, and comes back to one that was killed")
    func lateServer() throws {
        let server = try TestCluster.start(durable: false)
        let conninfo = try server.conninfo()
        server.cluster.stop()
        let link = try DatabaseLink(
            on: driver.loop, ConnectionSettings(conninfo),
            backoff: Backoff(base: .milliseconds(1), limit: .milliseconds(50)),
            random: SeededRandom(seed: 1))
        var ready = 0
        var lost: [DatabaseError] = []
        link.onReady = { _ in ready += 1 }
        link.onLost = { lost.append($0) }
        link.start()
        driver.wait { lost.count >= 3 }
        #expect(ready == 0)
        #expect(lost.allSatisfy { $0.kind == .connection && $0.isRetryable })
        try server.cluster.start()
        driver.wait { ready == 1 }
        var pending: [Bool] = []
        for _ in 0..<5 { link.connection?.execute(sql: "SELECT pg_sleep(600)") { pending.append($0.failure == nil) } }
        lost = []
        link.onLost = { error in
            if lost.isEmpty { #expect(pending == Array(repeating: false, count: 5)) }
            lost.append(error)
        }
        let pid = try #require(server.cluster.pid)
        kill(pid, SIGKILL)
        driver.wait { !lost.isEmpty }
        try server.cluster.start()
        driver.wait { ready == 2 }
        #expect(link.state == .ready)
    }

    @Test("a failing set-up is a failed try, and is tried again")
    func failingSetup() throws {
        let database = try TestDatabase.make()
        let link = try DatabaseLink(
            on: driver.loop, ConnectionSettings(database.conninfo),
            setup: ["SELECT 1", "SELECT * FROM later", "SELECT 2"],
            backoff: Backoff(base: .milliseconds(1), limit: .milliseconds(20)))
        var lost: [DatabaseError] = []
        var ready = 0
        link.onLost = { lost.append($0) }
        link.onReady = { _ in ready += 1 }
        link.start()
        driver.wait { lost.count >= 2 }
        #expect(lost.allSatisfy { $0.sqlState == .undefinedTable })
        #expect(ready == 0)
        try database.connect().execute("CREATE TABLE later (a int)")
        driver.wait { ready == 1 }
    }

    @Test("a server that falls silent is noticed by the probe of an idle link")
    func probe() throws {
        let database = try TestDatabase.make()
        let link = try DatabaseLink(
            on: driver.loop, ConnectionSettings(database.conninfo), silenceLimit: .milliseconds(300),
            probeInterval: .milliseconds(50))
        var lost: [DatabaseError] = []
        var ready = 0
        link.onReady = { _ in ready += 1 }
        link.onLost = { lost.append($0) }
        link.start()
        driver.wait { ready == 1 }
        let pid = try #require(link.connection).backendPID
        kill(pid, SIGSTOP)
        defer { kill(pid, SIGCONT) }
        driver.wait { !lost.isEmpty }
        #expect(lost.first?.kind == .timeout)
        driver.wait { ready > 1 }
    }

    @Test("stopping inside callbacks stops for good")
    func stopInside() throws {
        let database = try TestDatabase.make()
        let link = try DatabaseLink(on: driver.loop, ConnectionSettings(database.conninfo), setup: ["SELECT 1"])
        var ready = 0
        link.onReady = { _ in
            ready += 1
            link.stop()
        }
        link.onLost = { _ in Issue.record("stopping is no loss") }
        link.start()
        driver.wait { ready == 1 }
        link.start()
        driver.wait { ready == 2 }
        #expect(link.state == .stopped)
        link.onReady = nil
    }
}

@Suite("Backoff")
struct BackoffTests {
    @Test("waits stay under ceilings that double up to the limit, and fill them")
    func ceilings() {
        var random = SeededRandom(for: "backoff")
        var highest = [Duration](repeating: .zero, count: 12)
        var lowest = [Duration](repeating: .seconds(100), count: 12)
        for _ in 0..<500 {
            var backoff = Backoff(base: .milliseconds(10), limit: .milliseconds(500))
            for step in 0..<12 {
                let wait = backoff.next(using: &random)
                let ceiling = min(Duration.milliseconds(10 * (1 << step)), .milliseconds(500))
                #expect(wait >= .zero && wait <= ceiling)
                highest[step] = max(highest[step], .seconds(1) * (wait / ceiling))
                lowest[step] = min(lowest[step], .seconds(1) * (wait / ceiling))
            }
            #expect(backoff.failures == 12)
            backoff.reset()
            #expect(backoff.failures == 0)
        }
        #expect(highest.allSatisfy { $0 > .milliseconds(950) })
        #expect(lowest.allSatisfy { $0 < .milliseconds(50) })
    }

    @Test("the same seed gives the same waits, and endless failures do not overflow")
    func seeds() {
        func waits(_ seed: UInt64) -> [Duration] {
            var random = SeededRandom(seed: seed)
            var backoff = Backoff()
            return (0..<200).map { _ in backoff.next(using: &random) }
        }
        #expect(waits(7) == waits(7))
        #expect(waits(7) != waits(8))
        #expect(waits(7).allSatisfy { $0 <= .seconds(5) })
    }
}
