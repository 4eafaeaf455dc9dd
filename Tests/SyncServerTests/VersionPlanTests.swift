import Foundation
import Postgres
import TestSupport
import Testing

@testable import SyncServer

/// What a device asks for, read of a player with many versions among others: a page of rows, by an index.
@Suite("what reading the history costs")
struct VersionPlanTests {
    private static let player = UUID(uuid: (7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7))

    private static let database: Result<TestDatabase, any Error> = Result {
        let database = try RuleDatabase()
        // 100,000 versions of one player, one in a hundred a conflict, and 20,000 of others.
        try database.connection.execute(
            """
            INSERT INTO players (player_id, last_revision)
            SELECT CASE p WHEN 0 THEN '\(player)' ELSE md5(p::text)::uuid END, 100000 FROM generate_series(0, 20) AS p;
            INSERT INTO devices (player_id, device_id, name, token_hash)
            SELECT '\(player)', md5(d::text)::uuid, 'device ' || d, sha256(d::text::bytea) FROM generate_series(1, 5) AS d;
            INSERT INTO game_versions (player_id, revision, device_id, saved, stamp, received, base, rival, schema, size,
                                       collection, game_id, outcome, state)
            SELECT p.player_id, r, md5((r % 5 + 1)::text)::uuid, t, t, t, NULL, CASE WHEN r % 100 = 0 THEN r - 1 END, 1, 16, 'c',
                   'g' || r % 500, CASE WHEN r % 100 = 0 THEN 'lost' WHEN r <= 500 THEN 'created' ELSE 'advanced' END,
                   '{"currentRow":1}'
              FROM players AS p,
                   LATERAL generate_series(1, CASE p.player_id WHEN '\(player)' THEN 100000 ELSE 1000 END) AS r,
                   LATERAL (SELECT timestamptz '2026-01-01' + r * interval '1 minute' AS t) AS m;
            INSERT INTO games (player_id, head_revision, stamp, saved, device_id, latest_saved, collection, game_id)
            SELECT DISTINCT ON (player_id, collection, game_id) player_id, revision, stamp, saved, device_id, saved, collection,
                   game_id FROM game_versions WHERE outcome <> 'lost' ORDER BY player_id, collection, game_id, revision DESC;
            ANALYZE;
            """)
        return database.database
    }

    private static let questions: [(Statement, arguments: String, index: String, most: Int64)] = [
        (ReadStatements.versionsSince, "50000, 100, 1048576, true", "game_versions_pkey", 500),
        (ReadStatements.versionsSince, "0, 1000, 1048576, false", "game_versions_pkey", 4_100),
        (ReadStatements.versionsBefore, "9223372036854775807, 100, 1048576, false", "game_versions_pkey", 500),
        (ReadStatements.conflictsSince, "50000, 100, 1048576, true", "game_versions_conflict_revisions_idx", 500),
        (
            ReadStatements.conflictsBefore, "9223372036854775807, 100, 1048576, true",
            "game_versions_conflict_revisions_idx", 500
        ),
        (ReadStatements.anyVersion, "77777, true", "game_versions_pkey", 5),
        (ReadStatements.devices, "'00000000-0000-0000-0000-000000000000', 101", "game_versions_pkey", 1_100),
        (ReadStatements.pullRecent, "99900, 100, 1048576", "game_versions_pkey", 400),
        (ReadStatements.pullAll, "0, 100, 1048576", "games_pkey", 1_200),
        (ReadStatements.head, "'c', 'g7'", "games_pkey", 5),
        (ReadStatements.one, "'c', 'g7', 77507", "game_versions_pkey", 5),
        (ReadStatements.history, "'c', 'g7', 9223372036854775807, 100", "game_versions_saved_idx", 300),
        (ReadStatements.lastRevision, "", "players_pkey", 5),
    ]

    @Test(
        "a page reads about as many rows as it has, by an index, with the plan that stays, as the owner and as the daemon's role",
        arguments: questions.indices, [nil, "ieum_daemon"])
    func pages(question: Int, role: String?) throws {
        let (statement, arguments, index, most) = Self.questions[question]
        let connection = try Self.database.get().connect()
        for (setting, value) in DatabasePool.sessionSettings { try connection.execute("SET \(setting) = \(value)") }
        try connection.execute("SET plan_cache_mode = force_generic_plan")
        if let role { try connection.execute("SET ROLE \(role)") }
        let types = statement.parameterTypes.map(\.sqlName)
        try connection.execute("PREPARE q (\(types.joined(separator: ", "))) AS \(statement.sql)")
        let call = "EXECUTE q ('\(Self.player)'\(arguments.isEmpty ? "" : ", \(arguments)"))"
        let rows = try #require(try connection.execute("EXPLAIN (COSTS OFF) \(call)").last)
        let plan = try (0..<rows.rowCount).map { try rows.text($0, 0) }.joined(separator: "\n")
        #expect(plan.contains(index) && !plan.contains("Seq Scan"), "\(plan)")
        let read = """
            SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_xact_user_tables
            """
        try connection.execute("BEGIN; SELECT set_config('ieum.player', '\(Self.player)', true)")
        let before = try connection.query(read).int8(0, 0)
        let answer = try connection.execute(call).last
        let count = try connection.query(read).int8(0, 0) - before
        try connection.execute("COMMIT")
        #expect((answer?.rowCount ?? 0) > 0)
        #expect(count < most, "\(count) rows for \(answer?.rowCount ?? 0)\n\(plan)")
    }
}
