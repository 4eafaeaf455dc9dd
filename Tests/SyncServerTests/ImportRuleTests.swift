import Foundation
import Postgres
import TestSupport
import Testing

/// What an import must come to, held against the rule itself: SQL/migrations/0013_import.sql.
@Suite("the rule of imports")
struct ImportRuleTests {
    private static let latest = "timestamptz 'infinity'"

    /// Lays the histories of all players out as if they were being imported.
    private func stage(_ database: RuleDatabase) throws {
        try database.connection.execute(
            """
            INSERT INTO import_versions (player_id, revision, device_id, saved, stamp, received, base, rival, schema, collection,
                                         game_id, outcome, state)
            SELECT player_id, revision, device_id, saved, stamp, received, base, rival, schema, collection, game_id, outcome,
                   state FROM game_versions;
            INSERT INTO import_devices (player_id, device_id, created, name)
            SELECT DISTINCT player_id, device_id, now(), 'phone' FROM game_versions;
            """)
    }

    private func problems(_ database: RuleDatabase) throws -> [String: Int] {
        let rows = try database.connection.query(
            """
            SELECT c.problem, min(c.revision)::text || ' of ' || min(p.player_id::text), count(*)
              FROM players AS p,
                   LATERAL (SELECT count(*) AS versions, count(DISTINCT v.device_id) AS devices FROM game_versions AS v
                             WHERE v.player_id = p.player_id) AS v,
                   LATERAL check_import(p.player_id, v.versions, v.devices, p.last_revision, p.purged_before,
                                        \(Self.latest)) AS c
             WHERE c.problem IS NOT NULL GROUP BY 1
            """)
        var found: [String: Int] = [:]
        for row in 0..<rows.rowCount {
            found["\(try rows.text(row, 0)) at \(try rows.text(row, 1))"] = Int(try rows.int8(row, 2))
        }
        return found
    }

    @Test("every history that pushes and retention have made is taken")
    func takesEverything() throws {
        var random = SeededRandom(for: "imports of random histories")
        let database = try RuleDatabase()
        var model = ModelRule()
        var histories = (0..<1_000).map { _ in ModelHistory(using: &random) }
        try database.register(histories.map { ($0.player, $0.devices) })
        for history in histories { model.register(player: history.player, devices: Set(history.devices)) }
        var arrived: Int64 = 1_800_000_000_000_000
        for _ in 0..<30 {
            var batch: [ModelRule.Push] = []
            for index in histories.indices where Int.random(in: 0..<2, using: &random) == 0 {
                let server = model.players[histories[index].player] ?? ModelRule.Player()
                batch += histories[index].next(knowing: server, now: arrived, using: &random)
            }
            batch.sort { $0.game.player < $1.game.player }
            arrived += Int64.random(in: -2_000...20_000, using: &random)
            _ = model.push(batch, arrived: arrived)
            _ = try database.push(batch, arrived: arrived, asOlderDaemons: Int.random(in: 0..<4, using: &random) == 0)
            if Int.random(in: 0..<3, using: &random) == 0 { try prune(histories, &model, database, using: &random) }
        }
        try stage(database)
        let count = try database.connection.query("SELECT count(*) FROM import_versions").int8(0, 0)
        #expect(count > 10_000)
        #expect(try problems(database) == [:])
    }

    /// As retention does it: any version that is no head, marked.
    private func prune(
        _ histories: [ModelHistory], _ model: inout ModelRule, _ database: RuleDatabase,
        using random: inout SeededRandom
    ) throws {
        for history in histories where Int.random(in: 0..<4, using: &random) == 0 {
            guard let server = model.players[history.player],
                let version = server.versions.randomElement(using: &random),
                !server.heads.values.contains(version.revision)
            else { continue }
            model.prune(version.revision, of: history.player)
            try database.connection.execute(
                """
                DELETE FROM game_versions WHERE player_id = '\(history.player)' AND revision = \(version.revision);
                UPDATE players SET purged_before = greatest(purged_before, \(version.revision + 1))
                 WHERE player_id = '\(history.player)';
                """)
        }
    }

    @Test("a last revision from which pushes could not go on is refused", arguments: [1 << 53, Int64.max])
    func lastRevision(last: Int64) throws {
        let database = try RuleDatabase()
        let device = UUID()
        try database.register(player: RuleTests.player, devices: [device])
        func check(_ last: Int64) throws -> String? {
            let rows = try database.connection.query(
                "SELECT problem FROM check_import('\(RuleTests.player)', 0, 0, \(last), \(last), now())")
            return try rows.isNull(0, 0) ? nil : rows.text(0, 0)
        }
        #expect(try check(last) == "last")
        #expect(try check((1 << 53) - 1) != "last")
    }

    @Test(
        "a history that was changed by hand is refused, and the rule that it breaks is named",
        arguments: [
            ("DELETE FROM import_versions WHERE revision = 2", "incomplete"),
            ("DELETE FROM import_devices WHERE name = 'tablet'", "incomplete"),
            ("UPDATE import_devices SET device_id = gen_random_uuid() WHERE name = 'tablet'", "device"),
            ("UPDATE import_versions SET revision = 60 WHERE revision = 6", "gap"),
            ("UPDATE import_versions SET outcome = 'lost', rival = 1 WHERE game_id = 'other'", "head"),
            ("UPDATE import_versions SET received = 'infinity' WHERE revision = 1", "future"),
            (
                "UPDATE import_versions SET saved = (SELECT saved FROM import_versions WHERE revision = 1) WHERE revision = 3",
                "saved"
            ),
            ("UPDATE import_versions SET outcome = 'created', base = NULL WHERE revision = 2", "outcome"),
            ("UPDATE import_versions SET outcome = 'won' WHERE revision = 2", "outcome"),
            ("UPDATE import_versions SET rival = 1 WHERE revision = 2", "outcome"),
            ("UPDATE import_versions SET base = NULL WHERE revision = 2", "base"),
            ("UPDATE import_versions SET base = 4 WHERE revision = 2", "base"),
            ("UPDATE import_versions SET base = 5 WHERE revision = 6", "base"),
            ("UPDATE import_versions SET base = 3, received = received + interval '1 s' WHERE revision = 5", "base"),
            ("UPDATE import_versions SET rival = 1 WHERE revision = 3", "rival"),
            ("UPDATE import_versions SET outcome = 'won' WHERE revision = 3", "rival"),
            ("UPDATE import_versions SET outcome = 'lost' WHERE revision = 4", "rival"),
            ("UPDATE import_versions SET base = 0 WHERE revision = 4", "rival"),
            ("UPDATE import_versions SET stamp = stamp + interval '1 s' WHERE revision = 6", "stamp"),
            ("UPDATE import_versions SET stamp = stamp - interval '1 us' WHERE revision = 2", "stamp"),
        ])
    func refuses(change: String, rule: String) throws {
        let database = try RuleDatabase()
        let (player, phone, tablet) = (RuleTests.player, UUID(), UUID())
        try database.register(player: player, devices: [phone, tablet])
        func push(_ device: UUID, _ saved: Int64, _ base: Int64?, game: String = "today") throws -> String? {
            var push = RuleTests.push(saved, base: base, game: game)
            push.device = device
            return try database.push([push], arrived: 1_800_000_000_000_000)[0].outcome.rawValue
        }
        #expect(try push(phone, 10, 0) == "created")
        #expect(try push(tablet, 20, 1) == "advanced")
        #expect(try push(phone, 15, 1) == "lost")
        #expect(try push(tablet, 30, nil) == "won")
        #expect(try push(phone, 10, 0, game: "other") == "created")
        #expect(try push(phone, 5, 4) == "advanced")
        try database.connection.execute("UPDATE devices SET name = 'tablet' WHERE device_id = '\(tablet)'")
        try stage(database)
        try database.connection.execute(
            "UPDATE import_devices AS i SET name = d.name FROM devices AS d WHERE d.device_id = i.device_id")
        func check() throws -> String? {
            let rows = try database.connection.query(
                "SELECT problem FROM check_import('\(player)', 6, 2, 6, 0, now() + interval '100 years')")
            return try rows.isNull(0, 0) ? nil : rows.text(0, 0)
        }
        #expect(try check() == nil)
        try database.connection.execute(change)
        #expect(try check() == rule)
    }
}
