import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@Suite("pushes from many connections")
struct RuleTestsConcurrency {
    /// Runs bodies on threads of their own, since they wait for the database, and gives their errors.
    private func inParallel(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) async -> [String] {
        await withTaskGroup(of: String?.self) { group in
            for index in 0..<count {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        Thread.detachNewThread {
                            do {
                                try body(index)
                                continuation.resume(returning: nil)
                            } catch {
                                continuation.resume(returning: "\(error)")
                            }
                        }
                    }
                }
            }
            return await group.compactMap { $0 }.reduce(into: []) { $0.append($1) }
        }
    }

    /// What writers and reader tell each other and the test.
    private final class Progress: Sendable {
        let accepted = Atomic<Int>(0)
        let writing: Atomic<Int>
        let followed = Mutex<[UUID: Int64]>([:])

        init(writers: Int) {
            writing = Atomic(writers)
        }
    }

    @Test(
        "revisions have no gap, and a reader that follows by cursor misses nothing",
        arguments: [(writers: 16, batches: 150, players: 5), (writers: 2, batches: 400, players: 1)])
    func gapless(writers: Int, batches: Int, players count: Int) async throws {
        var random = SeededRandom(for: "pushes from many connections")
        let database = try RuleDatabase()
        let players = (0..<count).map { _ in UUID.random(using: &random) }
        let devices = (0..<writers).map { _ in UUID.random(using: &random) }
        try database.register(players.map { ($0, devices) })
        let conninfo = database.database.conninfo
        // Long before now: nothing is held down, so that the model can replay what was stored.
        let start = RuleTests.noon - 10_000_000_000_000
        let seeds = (0..<writers).map { _ in random.next() }
        let progress = Progress(writers: writers)

        let failures = await inParallel(writers + 1) { index in
            // Also of a writer that fails at once: the reader waits for all of them.
            defer { if index < writers { progress.writing.subtract(1, ordering: .releasing) } }
            let connection = try BlockingConnection(conninfo)
            if index == writers {
                // The reader: each page must go on exactly where the last one ended.
                var cursors = Dictionary(uniqueKeysWithValues: players.map { ($0, Int64(0)) })
                var isLast = false
                while true {
                    for player in players {
                        let cursor = cursors[player] ?? 0
                        let rows = try connection.query(
                            """
                            SELECT v.revision FROM game_versions AS v WHERE v.player_id = '\(player)' AND v.revision > \(cursor)
                             ORDER BY v.revision
                            """)
                        for row in 0..<rows.rowCount {
                            let revision = try rows.int8(row, 0)
                            guard revision == cursor + Int64(row) + 1 else {
                                throw DatabaseError(.protocol, "revision \(revision) after \(cursor + Int64(row))")
                            }
                            cursors[player] = revision
                        }
                    }
                    if isLast { break }
                    isLast = progress.writing.load(ordering: .acquiring) == 0
                }
                progress.followed.withLock { [cursors] in $0 = cursors }
                return
            }
            var random = SeededRandom(seed: seeds[index])
            var seen: [ModelRule.GameKey: Int64] = [:]
            for batch in 0..<batches {
                var pushes: [ModelRule.Push] = []
                for player in players.shuffled(using: &random).prefix(.random(in: 1...players.count, using: &random)) {
                    for game in 0..<Int.random(in: 1...6, using: &random) {
                        let game = ModelRule.GameKey(player: player, collection: "handle.game", id: "\(game)")
                        pushes.append(
                            ModelRule.Push(
                                game: game, device: devices[index], saved: start + Int64(batch / 2),
                                base: [nil, 0, seen[game], seen[game]].randomElement(using: &random) ?? nil,
                                state: Array("{}".utf8)))
                    }
                }
                if Bool.random(using: &random) { pushes.sort { $0.game.player < $1.game.player } }
                let answers = try Self.pushTillDone(pushes, on: connection)
                for (push, answer) in zip(pushes, answers) { seen[push.game] = answer.revision }
                progress.accepted.add(
                    answers.count { [.created, .advanced, .won, .lost].contains($0.outcome) }, ordering: .relaxed)
            }
        }
        #expect(failures.isEmpty, "\(failures)")
        let stored = try database.players()
        var total = 0
        for player in players {
            let got = try #require(stored[player])
            #expect(got.versions.map(\.revision) == Array(1..<(got.lastRevision + 1)))
            #expect(progress.followed.withLock { $0[player] } == got.lastRevision)
            total += got.versions.count
            // What is stored is what the rule gives, replayed in the order of the commits.
            var model = ModelRule()
            model.register(player: player, devices: Set(devices))
            for version in got.versions {
                let answer = model.push([version.push], arrived: .max - ModelRule.tolerance)[0]
                #expect(answer.outcome == version.outcome && answer.rival == version.rival)
            }
            #expect(model.players[player]?.heads == got.heads)
        }
        #expect(total == progress.accepted.load(ordering: .relaxed))
    }

    /// As the daemon does: a batch that met a deadlock goes again. Unsorted batches may meet one, sorted ones may not.
    private static func pushTillDone(
        _ batch: [ModelRule.Push], on connection: BlockingConnection
    ) throws -> [ModelRule.Answer] {
        while true {
            do {
                return try RuleDatabase.push(batch, on: connection)
            } catch let error as DatabaseError where error.isRetryable && error.kind == .server {
                continue
            }
        }
    }
}
