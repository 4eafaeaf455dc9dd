import Foundation
import Postgres
import TestSupport
import Testing

@Suite("what a push costs")
struct RuleTestsCost {
    /// Rows of all tables that a statement read, counted by PostgreSQL itself.
    private func rowsRead(_ database: RuleDatabase, by body: () throws -> Void) throws -> Int64 {
        let read = """
            SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_xact_user_tables
            """
        // What earlier transactions did may still be in the count; it is not handed on inside a transaction.
        try database.connection.execute("BEGIN")
        let before = try database.connection.query(read).int8(0, 0)
        try body()
        let after = try database.connection.query(read).int8(0, 0)
        try database.connection.execute("COMMIT")
        return after - before
    }

    @Test(
        "a push reads a handful of rows, though its plans were made before there were any",
        arguments: [true, false])
    func plansStay(isAnalyzed: Bool) throws {
        let database = try RuleDatabase()
        let others = (0..<2_000).map { _ in UUID() }
        for table in ["players", "devices", "games", "game_versions"] {
            try database.connection.execute("ALTER TABLE \(table) SET (autovacuum_enabled = off)")
        }
        try database.register(player: RuleTests.player, devices: [RuleTests.phone])
        func push(_ game: Int, _ saved: Int64, base: Int64?) -> ModelRule.Push {
            RuleTests.push(saved, base: base, game: "g\(game)")
        }
        // The statistics at their most misleading: one row in each table.
        _ = try database.push([push(0, -1, base: 0)])
        if isAnalyzed { try database.connection.execute("ANALYZE") }
        // Each of the function's statements is planned now, once and for all: a repeat, a loss, two pushes of a player.
        _ = try database.push([push(0, -1, base: 0)])
        _ = try database.push([push(0, -2, base: 0), push(1, -1, base: nil)])
        _ = try database.push([push(0, -1, base: 0), push(1, 0, base: 3)])

        // Many games of one player saved at one moment, many versions of one game, many players.
        try database.register(others.map { ($0, [RuleTests.phone]) })
        for start in stride(from: 1_000, to: 9_000, by: 1_000) {
            _ = try database.push((start..<start + 1_000).map { push($0, -1, base: 0) })
        }
        for moment in 0..<1_000 { _ = try database.push([push(1, Int64(moment) + 10, base: nil)]) }
        _ = try database.push(
            others.sorted().map { other in
                var one = push(0, -1, base: 0)
                one.game.player = other
                return one
            })

        let last = try #require(try database.push([push(2, -1, base: 0)])[0].revision)
        #expect(try rowsRead(database) { _ = try database.push([push(2, 5, base: last)]) } < 20)
        #expect(try rowsRead(database) { _ = try database.push([push(5_000, -1, base: 0)]) } < 20)
        #expect(try rowsRead(database) { _ = try database.push([push(1, 500, base: 2)]) } < 20)
        let batch = (3_000..<3_100).map { push($0, 5, base: nil) }
        #expect(try rowsRead(database) { _ = try database.push(batch) } < 20 * 100)
        let wide = others.sorted().prefix(100).map { other in
            var one = push(0, 5, base: 1)
            one.game.player = other
            return one
        }
        #expect(try rowsRead(database) { _ = try database.push(Array(wide)) } < 20 * 100)
    }
}
