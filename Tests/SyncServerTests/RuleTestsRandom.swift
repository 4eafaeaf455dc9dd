import Foundation
import TestSupport
import Testing

@Suite("the push rule over random histories")
struct RuleTestsRandom {
    @Test(
        "SQL and model give the same answers and hold the same, however batches are cut",
        arguments: [(histories: 10_000, isDistributed: false), (histories: 500, isDistributed: true)])
    func sameAsModel(histories count: Int, isDistributed: Bool) throws {
        var random = SeededRandom(for: "the push rule over random histories")
        let database = try RuleDatabase(isDistributed: isDistributed)
        var model = ModelRule()
        var histories = (0..<count).map { _ in ModelHistory(using: &random) }
        try database.register(histories.map { ($0.player, $0.devices) })
        for history in histories { model.register(player: history.player, devices: Set(history.devices)) }

        var arrived: Int64 = 1_800_000_000_000_000
        var seen: [ModelRule.Outcome: Int] = [:]
        var open = Array(histories.indices)
        while !open.isEmpty {
            open.shuffle(using: &random)
            let chosen = open.prefix(Int.random(in: 1...250, using: &random))
            var batch: [ModelRule.Push] = []
            for index in chosen {
                let server = model.players[histories[index].player] ?? ModelRule.Player()
                batch += histories[index].next(knowing: server, now: arrived, using: &random)
            }
            open.removeAll { histories[$0].sent.count >= 12 }
            // Mostly as the daemon does it, sorted by player; but the order must not matter.
            if Int.random(in: 0..<4, using: &random) > 0 {
                batch.sort { $0.game.player < $1.game.player }
            } else {
                batch.shuffle(using: &random)
            }
            // The server's clock goes on, and now and then back a little.
            arrived += Int64.random(in: -2_000...20_000, using: &random)
            let wanted = model.push(batch, arrived: arrived).map(\.asTold)
            // Half the batches come with word of the valid devices, which must make no difference.
            let verified = model.players.values.reduce(into: Set<UUID>()) { $0.formUnion($1.devices) }
            let got = try database.push(
                batch, arrived: arrived, verified: Bool.random(using: &random) ? verified : [],
                asOlderDaemons: Int.random(in: 0..<4, using: &random) == 0)
            for (index, push) in batch.enumerated() {
                try #require(got[index] == wanted[index], "\(push) among \(batch.count), arrived \(arrived)")
                seen[got[index].outcome, default: 0] += 1
            }
            if Int.random(in: 0..<8, using: &random) == 0, let index = histories.indices.randomElement(using: &random) {
                try disturb(histories[index], &model, database, using: &random)
            }
        }
        for outcome in ModelRule.Outcome.all { #expect(seen[outcome, default: 0] > 20, "too few \(outcome)") }
        let stored = try database.players()
        #expect(stored.count == model.players.count)
        for (player, wanted) in model.players {
            let got = try #require(stored[player])
            try #require(got.lastRevision == wanted.lastRevision && got.heads == wanted.heads)
            try #require(got.versions == wanted.versions && got.devices == wanted.devices)
        }
    }

    /// A device is revoked, or retention prunes a version that is no head.
    private func disturb(
        _ history: ModelHistory, _ model: inout ModelRule, _ database: RuleDatabase,
        using random: inout SeededRandom
    ) throws {
        guard let server = model.players[history.player] else { return }
        if Bool.random(using: &random), let device = history.devices.randomElement(using: &random) {
            model.revoke(device: device, of: history.player)
            try database.connection.execute("UPDATE devices SET revoked = now() WHERE device_id = '\(device)'")
        } else if let version = server.versions.randomElement(using: &random),
            !server.heads.values.contains(version.revision)
        {
            model.prune(version.revision, of: history.player)
            try database.connection.execute(
                "DELETE FROM game_versions WHERE player_id = '\(history.player)' AND revision = \(version.revision)")
        }
    }

    @Test("the same pushes win in every order in which they may arrive")
    func orderIndependent() throws {
        var random = SeededRandom(for: "the push rule in every order")
        let database = try RuleDatabase()
        let arrived: Int64 = 1_800_000_000_000_000
        // A story: pushes of one game, each with the number of the push that it had seen, or none.
        struct Step {
            var device: UUID
            var saved: Int64
            var seen: Int?
        }
        for _ in 0..<30 {
            let devices = (0..<3).map { _ in UUID.random(using: &random) }
            var steps: [Step] = []
            while steps.count < 6 {
                let seen =
                    Int.random(in: 0..<3, using: &random) == 0 ? nil : steps.indices.randomElement(using: &random)
                let step = Step(
                    device: devices.randomElement(using: &random) ?? devices[0],
                    saved: arrived - Int64.random(in: 0..<8, using: &random), seen: seen)
                if !steps.contains(where: { $0.device == step.device && $0.saved == step.saved }) { steps.append(step) }
            }
            var winners: Set<Int> = []
            for _ in 0..<12 {
                let player = UUID.random(using: &random)
                try database.register(player: player, devices: devices)
                let game = ModelRule.GameKey(player: player, collection: "handle.game", id: "today")
                var revisions: [Int64?] = steps.map { _ in nil }
                var left = Array(steps.indices)
                while !left.isEmpty {
                    let ready = left.filter { index in steps[index].seen.map { revisions[$0] != nil } ?? true }
                    let index = try #require(ready.randomElement(using: &random))
                    let step = steps[index]
                    let answers = try database.push(
                        [
                            ModelRule.Push(
                                game: game, device: step.device, saved: step.saved,
                                base: step.seen.flatMap { revisions[$0] }, state: Array("{\"step\":\(index)}".utf8))
                        ], arrived: arrived)
                    revisions[index] = try #require(answers.first?.revision)
                    left.removeAll { $0 == index }
                }
                let head = try database.connection.query(
                    "SELECT (state->>'step')::bigint FROM current_games WHERE player_id = '\(player)'")
                winners.insert(Int(try head.int8(0, 0)))
            }
            #expect(winners.count == 1, "\(steps)")
        }
    }
}

extension ModelRule.Answer {
    /// As the answer on the wire can carry it: of the head its base, outcome and rival are not told.
    var asTold: Self {
        var copy = self
        copy.head?.push.base = nil
        copy.head?.outcome = .created
        copy.head?.rival = nil
        return copy
    }
}

extension ModelRule.Outcome {
    static let all: [Self] = [
        .created, .advanced, .won, .lost, .repeated, .baseMismatch, .savedReused, .savedOutOfRange, .invalidID,
        .unknownPlayer, .unknownDevice,
    ]
}
