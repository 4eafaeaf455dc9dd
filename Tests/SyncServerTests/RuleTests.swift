import Foundation
import Postgres
import TestSupport
import Testing

/// Every row of the rule, spelled out; both SQL and model must say so.
@Suite("the push rule, row by row")
struct RuleTests {
    typealias Push = ModelRule.Push
    typealias Outcome = ModelRule.Outcome

    static let player = UUID(uuidString: "00000000-0000-0000-0000-000000000001") ?? UUID()
    static let phone = UUID(uuidString: "00000000-0000-0000-0000-00000000000a") ?? UUID()
    static let tablet = UUID(uuidString: "00000000-0000-0000-0000-00000000000b") ?? UUID()
    /// The server's clock in every case.
    static let noon: Int64 = 1_800_000_000_000_000

    /// `saved` is told relative to noon, in microseconds.
    static func push(
        _ saved: Int64, base: Int64? = nil, by device: UUID = phone, game: String = "today", state: String? = "{}"
    ) -> Push {
        Push(
            game: ModelRule.GameKey(player: player, collection: "handle.game", id: game), device: device,
            saved: saved + noon, base: base, state: state.map { Array($0.utf8) })
    }

    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var earlier: [Push]
        var push: Push
        var outcome: Outcome
        var first: Outcome?
        var revision: Int64?
        /// Relative to noon.
        var stamp: Int64?
        var rival: Int64?
        var head: Int64
        var isHeadTold = false
    }

    static let cases = [
        Case(
            testDescription: "a new game is created", earlier: [], push: push(-10), outcome: .created, revision: 1,
            stamp: -10, head: 1),
        Case(
            testDescription: "who saw the head advances it, even with a clock a day behind",
            earlier: [push(-10)], push: push(-86_400_000_000, base: 1, by: tablet), outcome: .advanced, revision: 2,
            stamp: -9, head: 2),
        Case(
            testDescription: "who saw the head advances it, even if that was a tombstone",
            earlier: [push(-10), push(-5, base: 1, state: nil)], push: push(-7, base: 2), outcome: .advanced,
            revision: 3, stamp: -4, head: 3),
        Case(
            testDescription: "of concurrent pushes the later wins", earlier: [push(-10), push(-8, base: 1)],
            push: push(-7, base: 1, by: tablet), outcome: .won, revision: 3, stamp: -7, rival: 2, head: 3),
        Case(
            testDescription: "of concurrent pushes the earlier loses and is told the head",
            earlier: [push(-10), push(-7, base: 1)], push: push(-8, base: 1, by: tablet), outcome: .lost, revision: 3,
            stamp: -8, rival: 2, head: 2, isHeadTold: true),
        Case(
            testDescription: "a stamp is raised above the base's though the base is no head",
            earlier: [push(-10), push(-9, base: 1)], push: push(-20, base: 1, by: tablet), outcome: .lost, revision: 3,
            stamp: -9, rival: 2, head: 2, isHeadTold: true),
        Case(
            testDescription: "at equal stamps the later saved wins",
            earlier: [push(-10), push(-20, base: 1)], push: push(-9, base: 1, by: tablet), outcome: .won, revision: 3,
            stamp: -9, rival: 2, head: 3),
        Case(
            testDescription: "at equal times the greater device wins", earlier: [push(-10)],
            push: push(-10, by: tablet), outcome: .won, revision: 2, stamp: -10, rival: 1, head: 2),
        Case(
            testDescription: "at equal times the lesser device loses", earlier: [push(-10, by: tablet)],
            push: push(-10), outcome: .lost, revision: 2, stamp: -10, rival: 1, head: 1, isHeadTold: true),
        Case(
            testDescription: "a clock that runs ahead is held down to five seconds after arrival", earlier: [],
            push: push(3_600_000_000), outcome: .created, revision: 1, stamp: 5_000_000, head: 1),
        Case(
            testDescription: "a base above the held down stamp raises it past five seconds",
            earlier: [push(3_600_000_000)], push: push(3_600_000_001, base: 1), outcome: .advanced, revision: 2,
            stamp: 5_000_001, head: 2),
        Case(
            testDescription: "a fresh install's default save loses though its clock is later",
            earlier: [push(-10)], push: push(-1, base: 0, by: tablet), outcome: .lost, revision: 2, stamp: -1,
            rival: 1, head: 1, isHeadTold: true),
        Case(
            testDescription: "a fresh install's default save loses to a tombstone too",
            earlier: [push(-10, state: nil)], push: push(-1, base: 0, by: tablet), outcome: .lost, revision: 2,
            stamp: -1, rival: 1, head: 1, isHeadTold: true),
        Case(
            testDescription: "base 0 of a game that is new indeed creates it", earlier: [], push: push(-1, base: 0),
            outcome: .created, revision: 1, stamp: -1, head: 1),
        Case(
            testDescription: "a base beyond the last revision counts as none", earlier: [push(-10)],
            push: push(-9, base: 77, by: tablet), outcome: .won, revision: 2, stamp: -9, rival: 1, head: 2),
        Case(
            testDescription: "a negative base counts as none", earlier: [push(-10)],
            push: push(-11, base: -1, by: tablet), outcome: .lost, revision: 2, stamp: -11, rival: 1, head: 1,
            isHeadTold: true),
        Case(
            testDescription: "a base of another game is refused and takes no revision",
            earlier: [push(-10), push(-10, game: "other")], push: push(-1, base: 2), outcome: .baseMismatch, head: 1),
        Case(
            testDescription: "a repeated push gets its first answer", earlier: [push(-10), push(-9, base: 1)],
            push: push(-10), outcome: .repeated, first: .created, revision: 1, stamp: -10, head: 2),
        Case(
            testDescription: "a push that lost and is repeated is told the present head",
            earlier: [push(-10), push(-20, by: tablet), push(-5, base: 1)], push: push(-20, by: tablet),
            outcome: .repeated, first: .lost, revision: 2, stamp: -20, rival: 1, head: 3, isHeadTold: true),
        Case(
            testDescription: "a push that lost with a later clock than the head's is known again",
            earlier: [push(-10), push(-1, base: 0, by: tablet)], push: push(-1, base: 0, by: tablet),
            outcome: .repeated, first: .lost, revision: 2, stamp: -1, rival: 1, head: 1, isHeadTold: true),
        Case(
            testDescription: "repeats are looked at before the base",
            earlier: [push(-10), push(-10, game: "other")], push: push(-10, base: 2), outcome: .repeated,
            first: .created, revision: 1, stamp: -10, head: 1),
        Case(
            testDescription: "another state under the same saved is refused, down to a blank",
            earlier: [push(-10)], push: push(-10, state: "{ }"), outcome: .savedReused, revision: 1, head: 1),
        Case(
            testDescription: "a delete under the same saved is refused", earlier: [push(-10)],
            push: push(-10, state: nil), outcome: .savedReused, revision: 1, head: 1),
        Case(
            testDescription: "a delete repeats like any push", earlier: [push(-10), push(-5, base: 1, state: nil)],
            push: push(-5, base: 1, state: nil), outcome: .repeated, first: .advanced, revision: 2, stamp: -5, head: 2),
        Case(
            testDescription: "an infinite time is refused", earlier: [push(-10)],
            push: push(Int64.max - noon, base: 1), outcome: .savedOutOfRange, head: 1),
        Case(
            testDescription: "a device that is not the player's is refused", earlier: [push(-10)],
            push: push(-1, base: 1, by: player), outcome: .unknownDevice, head: 1),
        Case(
            testDescription: "a game's id that is not in NFC is refused", earlier: [push(-10)],
            push: push(-1, game: "\u{1112}\u{1161}"), outcome: .invalidID, head: 1),
    ]

    @Test("SQL says", arguments: cases)
    func sql(_ test: Case) throws {
        let database = try RuleDatabase()
        try database.register(player: Self.player, devices: [Self.phone, Self.tablet])
        for push in test.earlier { _ = try database.push([push], arrived: Self.noon) }
        try check(test, try database.push([test.push], arrived: Self.noon)[0], try database.players())
    }

    @Test("the model says", arguments: cases)
    func model(_ test: Case) throws {
        var model = ModelRule()
        model.register(player: Self.player, devices: [Self.phone, Self.tablet])
        for push in test.earlier { _ = model.push([push], arrived: Self.noon) }
        let answer = model.push([test.push], arrived: Self.noon)[0]
        try check(test, answer, model.players)
    }

    private func check(_ test: Case, _ answer: ModelRule.Answer, _ players: [UUID: ModelRule.Player]) throws {
        #expect(answer.outcome == test.outcome)
        #expect(answer.first == test.first)
        #expect(answer.revision == test.revision)
        #expect(answer.stamp == test.stamp.map { $0 + Self.noon })
        #expect(answer.rival == test.rival)
        #expect((answer.head?.revision == test.head) == test.isHeadTold)
        let player = try #require(players[Self.player])
        #expect(player.heads[Self.push(0).game] == test.head)
        #expect(player.versions.map(\.revision) == Array(1...player.lastRevision))
    }
}

/// What concerns the batch and not the rule.
@Suite("a batch of pushes")
struct BatchTests {
    private static func refused(_ state: SQLState, _ body: () throws -> Void) -> Bool {
        do {
            try body()
            return false
        } catch let error as DatabaseError {
            return error.sqlState == state
        } catch {
            return false
        }
    }

    @Test("two pushes of one game in a batch are refused and nothing is written", arguments: [true, false])
    func doubledGame(isAdjacent: Bool) throws {
        let database = try RuleDatabase()
        let other = UUID()
        try database.register([(RuleTests.player, [RuleTests.phone]), (other, [RuleTests.phone])])
        var stranger = RuleTests.push(-1)
        stranger.game.player = other
        var batch = [RuleTests.push(-1), RuleTests.push(-2)]
        batch.insert(stranger, at: isAdjacent ? 2 : 1)
        #expect(Self.refused(SQLState(rawValue: "21000")) { _ = try database.push(batch) })
        let players = try database.players()
        #expect(players.values.allSatisfy { $0.lastRevision == 0 && $0.versions.isEmpty })
    }

    @Test("arrays of unequal length are refused: a missing state is no delete")
    func unequalArrays() throws {
        let database = try RuleDatabase()
        try database.register(player: RuleTests.player, devices: [RuleTests.phone])
        #expect(
            Self.refused(SQLState(rawValue: "2202E")) {
                try database.connection.execute(
                    """
                    SELECT push(NULL, '{\(RuleTests.player)}', '{\(RuleTests.phone)}', '{c}', '{g}', '{2026-01-01}', '{1}',
                                '{1}', '{}')
                    """)
            })
    }

    @Test("an empty batch has no answers")
    func empty() throws {
        #expect(try RuleDatabase().push([]).isEmpty)
    }

    @Test("without a given clock the server's own holds a stamp down")
    func ownClock() throws {
        let database = try RuleDatabase()
        try database.register(player: RuleTests.player, devices: [RuleTests.phone])
        let before = Int64(Date().timeIntervalSince1970 * 1_000_000)
        let ahead = ModelRule.savedRange.upperBound - 1 - RuleTests.noon
        let stamp = try #require(try database.push([RuleTests.push(ahead)])[0].stamp)
        let after = Int64(Date().timeIntervalSince1970 * 1_000_000)
        #expect((before + 4_999_000...after + 5_001_000).contains(stamp))
    }

    @Test("a state comes back byte for byte, whatever its spacing, and its size is counted")
    func bytes() throws {
        var random = SeededRandom(for: "states byte for byte")
        let database = try RuleDatabase()
        try database.register(player: RuleTests.player, devices: [RuleTests.phone])
        var states = (0..<500).map { _ in ModelHistory.state(using: &random) }
        states.append(Array(("[" + String(repeating: "\"한글\" ,\n", count: 100_000) + "0]").utf8))
        let letters = (0..<5_000).map { _ in "abcdef".randomElement(using: &random) ?? "a" }
        states.append(Array(("[\"" + String(letters) + "\"]").utf8))
        let batch = states.enumerated().map { index, state in
            var push = RuleTests.push(-1, game: "g\(index)")
            push.state = state
            return push
        }
        #expect(try database.push(batch).allSatisfy { $0.outcome == .created })
        let rows = try database.connection.query("SELECT state, size FROM game_versions ORDER BY revision")
        #expect(rows.rowCount == states.count)
        for (row, state) in states.enumerated() {
            try #require(try rows.byteArray(row, 0) == state)
            try #require(try Int(rows.int4(row, 1)) == state.count)
        }
        // And all of it can be asked in SQL.
        #expect(try database.connection.query("SELECT count(state::jsonb) FROM game_versions").int8(0, 0) == 502)
    }
}
