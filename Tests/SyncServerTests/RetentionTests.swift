import Foundation
import Postgres
import SyncServer
import Synchronization
import TestSupport
import Testing

@Suite("retention")
struct RetentionTests {
    private static let hour: Int64 = 3_600_000_000

    /// What may go, written from Documentation/history.md and not from the SQL.
    private func prunable(
        _ player: ModelRule.Player, received: [Int64: Int64], olderThan: Int64, keep: Int
    ) -> [ModelRule.Version] {
        player.versions.filter { version in
            guard received[version.revision, default: .max] < olderThan else { return false }
            if player.heads.values.contains(version.revision) { return false }
            let others = player.versions(of: version.push.game)
            let isInYoungConflict = others.contains {
                $0.rival == version.revision && received[$0.revision, default: .max] >= olderThan
            }
            let newer = others.count { $0.revision > version.revision }
            return !isInYoungConflict && newer >= keep
        }
    }

    @Test("removes exactly what the rule says, marks it, and pushes go on by the rule", arguments: [0, 1, 3])
    func sameAsModel(keep: Int) throws {
        var random = SeededRandom(for: "retention against a model, keep \(keep)")
        let database = try RuleDatabase()
        var model = ModelRule()
        var histories = (0..<120).map { _ in ModelHistory(using: &random) }
        try database.register(histories.map { ($0.player, $0.devices) })
        for history in histories { model.register(player: history.player, devices: Set(history.devices)) }
        var arrived: Int64 = 1_800_000_000_000_000
        var received: [UUID: [Int64: Int64]] = [:]
        var marks: [UUID: Int64] = [:]
        var (removed, youngConflicts) = (0, 0)

        for _ in 0..<4 {
            for _ in 0..<40 {
                var batch: [ModelRule.Push] = []
                for index in histories.indices.shuffled(using: &random).prefix(30) {
                    let server = model.players[histories[index].player] ?? ModelRule.Player()
                    batch += histories[index].next(knowing: server, now: arrived, using: &random)
                }
                arrived += Int64.random(in: 0...Self.hour, using: &random)
                let wanted = model.push(batch, arrived: arrived).map(\.asTold)
                try #require(try database.push(batch, arrived: arrived) == wanted)
                for (push, answer) in zip(batch, wanted) where answer.first == nil {
                    if answer.stamp != nil, let revision = answer.revision {
                        received[push.game.player, default: [:]][revision] = arrived
                    }
                }
            }
            let olderThan = arrived - Int64.random(in: 0...30 * Self.hour, using: &random)
            var wanted = Retention.Report()
            for (player, held) in model.players {
                let ages = received[player, default: [:]]
                let gone = prunable(held, received: ages, olderThan: olderThan, keep: keep)
                youngConflicts += held.versions.count { version in
                    ages[version.revision, default: .max] < olderThan
                        && held.versions.contains {
                            $0.rival == version.revision && ages[$0.revision] ?? 0 >= olderThan
                        }
                }
                wanted.seen += Int64(held.versions.count)
                wanted.deleted += Int64(gone.count)
                wanted.octets += gone.reduce(0) { $0 + Int64($1.push.state?.count ?? 0) }
                wanted.tombstones += Int64(gone.count { $0.push.state == nil })
                wanted.losers += Int64(
                    gone.count { version in
                        version.outcome == .lost
                            || held.versions.contains { $0.rival == version.revision && $0.outcome == .won }
                    })
                wanted.players += gone.isEmpty ? 0 : 1
                if let last = gone.map(\.revision).max() { marks[player] = max(marks[player] ?? 0, last + 1) }
            }
            // Any size of page gives the same; a trial run removes nothing.
            let page = Int32.random(in: 1...60, using: &random)
            #expect(try prune(database, olderThan, keep, isDryRun: true, page: page) == wanted)
            #expect(try database.players().values.reduce(0) { $0 + $1.versions.count } == Int(wanted.seen))
            #expect(try prune(database, olderThan, keep, isDryRun: false, page: page) == wanted)
            for (player, held) in model.players {
                for version in prunable(
                    held, received: received[player, default: [:]], olderThan: olderThan, keep: keep)
                {
                    model.prune(version.revision, of: player)
                }
            }
            removed += Int(wanted.deleted)
            let stored = try database.players()
            for (player, wanted) in model.players {
                try #require(stored[player]?.versions == wanted.versions && stored[player]?.heads == wanted.heads)
            }
            // Doing it again finds nothing.
            #expect(try prune(database, olderThan, keep, isDryRun: false, page: 1_000).deleted == 0)
            let rows = try database.connection.query("SELECT player_id, purged_before FROM players")
            for row in 0..<rows.rowCount {
                try #require(try rows.int8(row, 1) == marks[rows.uuid(row, 0)] ?? 0)
            }
        }
        #expect(removed > 300 && youngConflicts > 20, "\(removed) removed, \(youngConflicts) in young conflicts")
    }

    private func prune(
        _ database: RuleDatabase, _ olderThan: Int64, _ keep: Int, isDryRun: Bool, page: Int32
    ) throws -> Retention.Report {
        var retention = Retention(olderThan: olderThan, keep: Int32(keep), isDryRun: isDryRun, page: page)
        while try retention.step(on: database.connection) {}
        return retention.report
    }

    @Test("beside pushes of the same players it harms none, and no head or base that is young goes")
    func besidePushes() async throws {
        var random = SeededRandom(for: "retention beside pushes")
        let database = try RuleDatabase()
        let players = (0..<20).map { _ in UUID.random(using: &random) }.sorted()
        let devices = (0..<4).map { _ in UUID.random(using: &random) }
        try database.register(players.map { ($0, devices) })
        let conninfo = database.database.conninfo
        let progress = Progress(writers: devices.count)
        let rounds = 150
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, device) in devices.enumerated() {
                group.addTask {
                    try await Self.onThread {
                        defer { progress.writing.subtract(1, ordering: .releasing) }
                        let connection = try BlockingConnection(conninfo)
                        for round in 0..<rounds {
                            let batch = players.map { player in
                                ModelRule.Push(
                                    game: .init(player: player, collection: "g", id: "\(round % 3)"), device: device,
                                    saved: 1_800_000_000_000_000 + Int64(round * 10 + index), state: Array("{}".utf8))
                            }
                            let answers = try RuleDatabase.push(batch, on: connection)
                            let isAccepted = answers.allSatisfy { $0.revision != nil && $0.stamp != nil }
                            if !isAccepted { throw DatabaseError(.protocol, "refused: \(answers)") }
                        }
                    }
                }
            }
            group.addTask {
                try await Self.onThread {
                    let connection = try BlockingConnection(conninfo, sessionSettings: ["deadlock_timeout": "10ms"])
                    while true {
                        let isLast = progress.writing.load(ordering: .acquiring) == 0
                        // Everything that has arrived may go: the harshest there is.
                        let now = try connection.query("SELECT clock_timestamp()").microsecondsSince1970(0, 0)
                        var retention = Retention(olderThan: now, page: 50)
                        while try retention.step(on: connection) {}
                        progress.pruned.add(Int(retention.report.deleted), ordering: .relaxed)
                        if isLast { return }
                    }
                }
            }
            try await group.waitForAll()
        }
        let stored = try database.players()
        var left = 0
        for player in players {
            let held = try #require(stored[player])
            #expect(held.lastRevision == Int64(rounds * devices.count))
            #expect(held.heads.count == 3)
            for head in held.heads.values { #expect(held.version(head) != nil) }
            left += held.versions.count
        }
        #expect(left + progress.pruned.load(ordering: .relaxed) == players.count * rounds * devices.count)
        #expect(left == players.count * 3)
    }

    /// What the threads tell each other and the test.
    private final class Progress: Sendable {
        let writing: Atomic<Int>
        let pruned = Atomic<Int>(0)

        init(writers: Int) {
            writing = Atomic(writers)
        }
    }

    private static func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }

    @Test("holds a player's lock no longer than one page, and waits for a push no longer than it is told")
    func locks() throws {
        let database = try RuleDatabase()
        let player = UUID()
        try database.register(player: player, devices: [RuleTests.phone])
        for saved in 1...3 {
            _ = try database.push([
                ModelRule.Push(
                    game: .init(player: player, collection: "g", id: "x"), device: RuleTests.phone,
                    saved: Int64(saved), state: Array("{}".utf8))
            ])
        }
        let pushing = try database.database.connect()
        try pushing.execute(
            "BEGIN; UPDATE players SET last_revision = last_revision WHERE player_id = '\(player)'")
        let pruning = try database.database.connect(sessionSettings: ["lock_timeout": "50ms"])
        var retention = Retention(olderThan: .max / 4, page: 2)
        #expect(throws: DatabaseError.self) { _ = try retention.step(on: pruning) }
        #expect(retention.report == Retention.Report())
        try pushing.execute("COMMIT")
        while try retention.step(on: pruning) {}
        #expect(retention.report.deleted == 2)
    }
}
