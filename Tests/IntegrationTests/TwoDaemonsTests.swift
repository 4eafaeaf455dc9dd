import Foundation
import Postgres
import TestSupport
import Testing

@Suite("two daemons on one database")
struct TwoDaemonsTests {
    @Test("random load through both: revisions have no gap, and who follows one of them misses nothing")
    func followers() throws {
        var random = SeededRandom(for: "TwoDaemonsTests.followers")
        let database = try TestDatabase.migrated()
        let daemons = try (0..<2).map { _ in try DaemonProcess(database: database.conninfo) }
        let loads = daemons.map { Shared(Load(port: $0.port, quota: 600)) }
        var players: [[PushingDevice]] = []
        for player in 0..<3 {
            let first = try RawClient(port: daemons[0].port)
            var devices = [
                try PushingDevice(
                    "\(player).0", signIn: first.ask("REGISTER"), games: 5, seed: random.next(), load: loads[0])
            ]
            for device in 1..<3 {
                let code = try #require(fields(try first.ask("PAIR"))["code"])
                let place = device % 2
                let answer = try RawClient(port: daemons[place].port).ask("LINK \(code)")
                devices.append(
                    try PushingDevice(
                        "\(player).\(device)", signIn: answer, games: 5, seed: random.next(), load: loads[place]))
            }
            players.append(devices)
        }
        let followers = try players.flatMap { devices in
            try daemons.map { try Follower(port: $0.port, token: devices[0].token) }
        }
        let (pushing, following) = (Workers(), Workers())
        for follower in followers { following.start { try follower.follow(toGame: "end") } }
        for device in players.joined() { pushing.start { try device.run() } }
        for (load, count) in zip(loads, [6, 3]) {
            try load.wait(120, for: "the devices push") { $0.acknowledged >= count * 600 || !$0.problems.isEmpty }
            load.change { $0.isEnding = true }
        }
        try pushing.join()
        for load in loads { #expect(load.current.problems == []) }
        for (index, devices) in players.enumerated() {
            let client = try RawClient(port: daemons[index % 2].port)
            _ = try client.ask("LOGIN \(devices[0].token)")
            #expect(try client.ask("PUSH handle.game end {}").hasPrefix("OK outcome=created "))
        }
        try following.join()
        for (index, devices) in players.enumerated() {
            let client = try RawClient(port: daemons[0].port)
            let last = fields(try client.ask("LOGIN \(devices[0].token)"))["revision"].flatMap { Int64($0) }
            let stored = try StoredVersions(devices[0].games + ["end"], over: client)
            let count: Int64 = 3 * 600 + 1
            #expect(last == count)
            #expect(stored.all == Array(1...count))
            for device in devices { #expect(stored.contradictions(to: device).prefix(5).isEmpty) }
            for follower in followers[(index * 2)..<(index * 2 + 2)] {
                #expect(follower.problems == [])
                #expect(follower.heads == stored.heads)
            }
        }
    }

    @Test("a push at one is told at the other within two seconds, also right after both lost their LISTEN sessions")
    func notices() throws {
        let database = try TestDatabase.migrated()
        let daemons = try (0..<2).map { _ in try DaemonProcess(database: database.conninfo) }
        let (phone, token) = try newPlayer(daemons[0])
        let watcher = try RawClient(port: daemons[1].port)
        _ = try watcher.ask("LOGIN \(token)")
        #expect(try watcher.ask("WATCH since=0") == "OK revision=0")
        let administrator = try database.connect()
        var (quick, quickAfterLoss) = (0, 0)
        for round in 1...20 {
            let isAfterLoss = round % 2 == 0
            if isAfterLoss {
                let ended = try administrator.query(
                    """
                    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE application_name = 'ieumd changes' AND datname = current_database()
                    """)
                #expect(ended.rowCount >= 1)
            }
            #expect(try phone.ask("PUSH g x {\"n\":\(round)}").hasPrefix("OK "))
            let begin = ContinuousClock.now
            #expect(try watcher.line(timeout: 60) == "* CHANGED revision=\(round)")
            guard ContinuousClock.now - begin < .seconds(2) else { continue }
            if isAfterLoss { quickAfterLoss += 1 } else { quick += 1 }
        }
        // Each is told; a machine that stands still now and then may be late.
        #expect(quick >= 7)
        #expect(quickAfterLoss >= 7)
    }

    @Test("what a daemon committed and could not tell any more before kill -9 is told by the other")
    func orphanedChange() async throws {
        try await aside {
            // Where a machine stands still just then, the notification gets out, or the other daemon looks by itself in that time.
            var isShown = false
            for _ in 0..<5 where !isShown {
                let database = try TestDatabase.migrated()
                let doomed = try DaemonProcess(database: database.conninfo)
                let administrator = try database.connect()
                let session =
                    "FROM pg_stat_activity WHERE application_name = 'ieumd changes' AND datname = current_database()"
                var listener: pid_t = 0
                try eventually(60, "the daemon listens") {
                    let rows = try administrator.query("SELECT pid \(session)")
                    guard rows.rowCount == 1 else { return false }
                    listener = try rows.int4(0, 0)
                    return true
                }
                let other = try DaemonProcess(database: database.conninfo)
                let (phone, token) = try newPlayer(doomed)
                let watcher = try RawClient(port: other.port)
                _ = try watcher.ask("LOGIN \(token)")
                #expect(try watcher.ask("WATCH since=0") == "OK revision=0")
                // The session that would notify stands still; the push commits on another.
                #expect(kill(listener, SIGSTOP) == 0)
                #expect(try phone.ask("PUSH g x {\"n\":1}").hasPrefix("OK outcome=created "))
                doomed.kill()
                _ = try administrator.query("SELECT pg_terminate_backend(\(listener))")
                #expect(kill(listener, SIGCONT) == 0)
                isShown = !watcher.hasInput(within: 0.5)
                #expect(try watcher.line(timeout: 90) == "* CHANGED revision=1")
            }
            #expect(isShown, "the notification was sent each time")
        }
    }
}

/// Follows a player's changes as a device does: watch, pull from the cursor, watch on.
///
/// `@unchecked`: it belongs to the thread that runs it, and to the test after that thread's end.
private final class Follower: @unchecked Sendable {
    private(set) var heads: [String: Int64] = [:]
    private(set) var problems: [String] = []
    private let client: RawClient
    private var cursor: Int64 = 0
    private var told: Int64 = 0

    init(port: Int, token: String) throws {
        client = try RawClient(port: port)
        _ = try client.ask("LOGIN \(token)")
        _ = try client.ask("WATCH since=0")
    }

    func follow(toGame last: String) throws {
        while heads[last] == nil {
            while told <= cursor { try take(client.line(timeout: 60)) }
            var hasMore = true
            while hasMore {
                try client.send("PULL since=\(cursor) limit=7")
                hasMore = try page()
            }
        }
    }

    /// Reads a page; says whether there is more.
    private func page() throws -> Bool {
        var revision = cursor
        while true {
            guard let line = try client.line(timeout: 60) else { throw SocketError(call: "the daemon closed", code: 0) }
            let values = fields(line)
            if line.hasPrefix("* ") {
                try take(line)
            } else if line.hasPrefix("GAME ") {
                let next = values["revision"].flatMap { Int64($0) } ?? 0
                if next <= revision { problems.append("\(line) behind \(revision)") }
                revision = next
                heads[String(line.split(separator: " ")[2])] = next
            } else if line.hasPrefix("END "), let end = values["cursor"].flatMap({ Int64($0) }) {
                if end < revision || end < cursor { problems.append("\(line) behind \(revision), from \(cursor)") }
                cursor = end
                return values["more"] == "true"
            } else {
                throw WaitError(description: "no line of a pull: \(line)")
            }
        }
    }

    private func take(_ notice: String?) throws {
        guard let notice, notice.hasPrefix("* CHANGED "), let next = fields(notice)["revision"].flatMap({ Int64($0) })
        else { throw WaitError(description: "no notice: \(notice ?? "(closed)")") }
        if next <= told { problems.append("\(notice) was told after \(told)") }
        told = next
    }
}
