import Foundation
import Postgres
import TestSupport
import Testing

/// Each view's common question goes by an index.
///
/// Asked of 20,000 versions of 500 players, of a real size each. The planner chooses between reading the table and the rows
/// that an index names; the table grows with all players, the rows only with the one asked for, so what is chosen here is
/// chosen with more reason on any larger table. Documentation/history.md has the figures of a million versions.
@Suite("plans of the views")
struct ViewPlanTests {
    private static let player = "md5('player7')::uuid"

    @Test("one player, one game, one day: no table of games is read through")
    func indexes() throws {
        let connection = try Self.database.get().connect()
        let who = "player_id = \(Self.player)"
        let game = "\(who) AND collection = 'handle.game' AND game_id = 'game2'"
        let questions = [
            "SELECT * FROM current_games WHERE \(who)", "SELECT * FROM current_games WHERE \(game)",
            "SELECT * FROM history WHERE \(who)", "SELECT * FROM history WHERE \(game)",
            "SELECT * FROM conflicts WHERE \(who)", "SELECT * FROM conflicts WHERE \(game)",
            "SELECT * FROM player_devices WHERE \(who)", "SELECT * FROM player_summary WHERE \(who)",
            "SELECT * FROM handle_games WHERE \(who)", "SELECT * FROM handle_guesses WHERE \(who)",
            "SELECT * FROM handle_games WHERE \(who) AND game_id = 'game2'",
            "SELECT * FROM handle_statistics WHERE \(who)",
        ]
        for question in questions {
            let plan = try Self.plan(question, connection)
            #expect(!plan.contains("Seq Scan") && plan.contains("Index"), "\(question)\n\(plan)")
            #expect(try Self.rowsRead(question, connection) < 400, "\(question)\n\(plan)")
        }
        let days = [
            "SELECT * FROM history WHERE received >= '2026-09-10' AND received < '2026-09-11'",
            "SELECT * FROM daily_activity WHERE day = '2026-09-10'",
            "SELECT * FROM daily_activity WHERE day > (now() AT TIME ZONE 'UTC')::date - 7",
            "SELECT * FROM conflicts WHERE met >= '2026-09-10' AND met < '2026-09-11'",
        ]
        for question in days {
            let plan = try Self.plan(question, connection)
            #expect(!plan.contains("Seq Scan on game_versions"), "\(question)\n\(plan)")
            #expect(
                plan.contains("game_versions_received_idx") || plan.contains("game_versions_conflicts_idx"),
                "\(question)\n\(plan)")
        }
        #expect(try Self.plan("TABLE daily_activity", connection).contains("Seq Scan on game_versions"))
    }

    private static func plan(_ question: String, _ connection: BlockingConnection) throws -> String {
        guard let rows = try connection.execute("EXPLAIN (COSTS OFF) \(question)").last else { return "" }
        return try (0..<rows.rowCount).map { try rows.text($0, 0) }.joined(separator: "\n")
    }

    /// Rows that the question takes from all tables, as PostgreSQL counts them.
    private static func rowsRead(_ question: String, _ connection: BlockingConnection) throws -> Int64 {
        let read = """
            SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_xact_user_tables
            """
        try connection.execute("BEGIN")
        let before = try connection.query(read).int8(0, 0)
        try connection.execute(question)
        let after = try connection.query(read).int8(0, 0)
        try connection.execute("COMMIT")
        return after - before
    }

    /// Every player pushes once a day for 40 days, in the order of arrival: 4 games of 10 versions, a conflict in fifty.
    private static let database: Result<TestDatabase, any Error> = Result {
        let database = try TestDatabase.migrated()
        let game = try HandleHistory.game("x", 1, "사람", guesses: ["마음", "나물", "사람"])
        let state = BlockingConnection.quoteLiteral(String(decoding: try JSONEncoder().encode(game), as: UTF8.self))
        try database.connect().execute(
            """
            INSERT INTO players (player_id, last_revision) SELECT md5('player' || p)::uuid, 40 FROM generate_series(1, 500) AS p;
            INSERT INTO devices (player_id, device_id, name, token_hash)
            SELECT md5('player' || p)::uuid, md5('device' || d)::uuid, 'device ' || d, sha256((p || ' ' || d)::bytea)
              FROM generate_series(1, 500) AS p, generate_series(0, 1) AS d;
            INSERT INTO game_versions (player_id, revision, device_id, saved, stamp, received, base, rival, schema, size,
                                       collection, game_id, outcome, state)
            SELECT md5('player' || p)::uuid, r, md5('device' || r % 2)::uuid, t, t, t, NULL,
                   CASE WHEN (p + r) % 50 = 0 AND r % 10 <> 1 THEN r - 1 END, 1, 2000, 'handle.game', 'game' || (r - 1) / 10,
                   CASE WHEN r % 10 = 1 THEN 'created' WHEN (p + r) % 50 = 0 THEN 'won' ELSE 'advanced' END, \(state)::json
              FROM generate_series(1, 40) AS r, generate_series(1, 500) AS p,
                   LATERAL (SELECT timestamptz '2026-09-01 00:00Z' + r * interval '1 day' + p * interval '60 s' AS t) AS m;
            INSERT INTO games (player_id, head_revision, stamp, saved, device_id, latest_saved, collection, game_id)
            SELECT player_id, revision, stamp, saved, device_id, saved, collection, game_id
              FROM game_versions WHERE revision % 10 = 0;
            """)
        try database.connect().execute("SELECT brin_summarize_new_values('game_versions_received_idx')")
        try database.connect().execute("ANALYZE")
        return database
    }
}
