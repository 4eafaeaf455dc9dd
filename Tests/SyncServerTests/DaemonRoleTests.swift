import Foundation
import Postgres
import TestSupport
import Testing

@testable import SyncServer

/// What the role ieum_daemon may do, and what it sees: SQL/migrations/0017_daemon.sql.
@Suite("the role ieum_daemon")
struct DaemonRoleTests {
    private static let ann = UUID(uuid: (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
    private static let bob = UUID(uuid: (2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2))

    /// Two players who have the same games, under the same revisions, with states that say whose they are.
    private static let database: Result<TestDatabase, any Error> = Result {
        let database = try RuleDatabase()
        try database.connection.execute(
            """
            INSERT INTO players (player_id, last_revision) VALUES ('\(ann)', 6), ('\(bob)', 7);
            INSERT INTO devices (player_id, device_id, name, token_hash)
            SELECT p.player_id, md5(p.player_id::text || d)::uuid, left(p.player_id::text, 1) || ' ' || d, sha256('x')
              FROM players AS p, generate_series(1, 2) AS d;
            INSERT INTO game_versions (player_id, revision, device_id, saved, stamp, received, base, rival, schema, size,
                                       collection, game_id, outcome, state)
            SELECT p.player_id, r, md5(p.player_id::text || (1 + r % 2))::uuid, t, t, t, NULL, CASE WHEN r > 4 THEN 1 END, 1, 13,
                   'c', CASE r WHEN 2 THEN 'h' ELSE 'g' END, CASE WHEN r < 3 THEN 'created' WHEN r > 4 THEN 'lost' ELSE 'advanced' END,
                   json_build_object('of', left(p.player_id::text, 1))
              FROM players AS p, LATERAL generate_series(1, p.last_revision) AS r,
                   LATERAL (SELECT timestamptz '2026-01-01' + r * interval '1 minute' + (p.last_revision - 6) * interval '1 s' AS t) AS m;
            INSERT INTO games (player_id, head_revision, stamp, saved, device_id, latest_saved, collection, game_id)
            SELECT DISTINCT ON (player_id, collection, game_id) player_id, revision, stamp, saved, device_id, saved, collection,
                   game_id FROM game_versions WHERE outcome <> 'lost' ORDER BY player_id, collection, game_id, revision DESC;
            """)
        return database.database
    }

    /// Everything that a daemon asks the tables themselves, with what it is asked about Ann.
    private static let reads: [(name: String, statement: Statement, arguments: String)] = [
        ("pullRecent", ReadStatements.pullRecent, "0, 100, 1048576"),
        ("pullAll", ReadStatements.pullAll, "0, 100, 1048576"),
        ("head", ReadStatements.head, "'c', 'g'"),
        ("one", ReadStatements.one, "'c', 'g', 3"),
        ("history", ReadStatements.history, "'c', 'g', 9223372036854775807, 100"),
        ("lastRevision", ReadStatements.lastRevision, ""),
        ("versionsSince", ReadStatements.versionsSince, "0, 100, 1048576, true"),
        ("versionsBefore", ReadStatements.versionsBefore, "9223372036854775807, 100, 1048576, true"),
        ("conflictsSince", ReadStatements.conflictsSince, "0, 100, 1048576, true"),
        ("conflictsBefore", ReadStatements.conflictsBefore, "9223372036854775807, 100, 1048576, true"),
        ("anyVersion", ReadStatements.anyVersion, "1, true"),
        ("devices", ReadStatements.devices, "'00000000-0000-0000-0000-000000000000', 100"),
        ("usage", PlayerLimits.usage, ""),
        ("game", PlayerLimits.game, "'c', 'g'"),
    ]

    /// Runs a statement about Ann, and gives its rows as one text each.
    private func rows(
        _ sql: String, _ read: Int, claiming player: UUID?, as role: String?
    ) throws -> [String] {
        let connection = try Self.database.get().connect()
        for (setting, value) in DatabasePool.sessionSettings { try connection.execute("SET \(setting) = \(value)") }
        if let role { try connection.execute("SET ROLE \(role)") }
        // Behind a transaction that had claimed somebody, as in a session that is in use.
        try connection.execute("BEGIN; SELECT set_config('ieum.player', '\(Self.bob)', true); COMMIT")
        let (_, statement, arguments) = Self.reads[read]
        try connection.execute(
            "PREPARE q (\(statement.parameterTypes.map(\.sqlName).joined(separator: ", "))) AS \(sql)")
        try connection.execute("BEGIN")
        if let player { try connection.execute("SELECT set_config('ieum.player', '\(player)', true)") }
        let given = (["'\(Self.ann)'"] + (arguments.isEmpty ? [] : [arguments])).joined(separator: ", ")
        let answer = try #require(try connection.execute("EXECUTE q (\(given))").last)
        return try (0..<answer.rowCount).map { row in
            try (0..<answer.columnCount).map { try answer.isNull(row, $0) ? "NULL" : answer.text(row, $0) }
                .joined(separator: " | ")
        }.sorted()
    }

    @Test("sees nothing of another player even where a statement has lost its predicates", arguments: reads.indices)
    func forgottenPredicate(read: Int) throws {
        let (name, statement, _) = Self.reads[read]
        let intact = try rows(statement.sql, read, claiming: nil, as: nil)
        let named = try rows(statement.sql, read, claiming: Self.ann, as: "ieum_daemon")
        #expect(!intact.isEmpty && named == intact, "\(name)")
        let predicate = try Regex(#"\b(\w+\.)?player_id = (\$1|\w+\.player_id)"#)
        let broken = statement.sql.replacing(predicate, with: "true")
        #expect(
            broken != statement.sql && !broken.contains("$1") && !broken.contains("player_id ="), "\(name): \(broken)")
        // That it would tell is shown by who is not bound.
        #expect(try rows(broken, read, claiming: Self.ann, as: nil) != intact, "\(name): it needs no predicate?")
        #expect(try rows(broken, read, claiming: Self.ann, as: "ieum_daemon") == intact, "\(name)")
        // Where nobody is named there is nothing to see: of counts that is one row of zeros.
        for sql in [statement.sql, broken] {
            let unnamed = try rows(sql, read, claiming: nil, as: "ieum_daemon")
            #expect(unnamed == (name == "usage" ? ["0 | 0 | 0"] : []), "\(name): \(unnamed)")
        }
        // Asking about Ann while Bob is named tells nothing either.
        let other = try rows(statement.sql, read, claiming: Self.bob, as: "ieum_daemon")
        #expect(other == (name == "usage" ? ["0 | 0 | 0"] : []), "\(name): \(other)")
    }

    @Test("is asked with every statement that there is")
    func everyStatement() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources/SyncServer")
        var names: Set<String> = []
        for file in ["ReadStatements.swift", "ReadStatements+Versions.swift", "Limits/PlayerLimits.swift"] {
            let text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
            names.formUnion(text.matches(of: #/static let (\w+) = (?:Statement|page)\(/#).map { String($0.1) })
        }
        #expect(names == Set(Self.reads.map(\.name)))
        // All others call functions.
        let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            guard text.contains("pool.execute(") || text.contains("connection.execute(Self") else { continue }
            #expect(
                !file.lastPathComponent.hasPrefix("ReadStatements")
                    && text.firstMatch(
                        of: #/FROM (players|devices|token_rotations|session_ends|pairing_codes|invites)\b/#) == nil,
                "\(file.lastPathComponent) reads a table of many players without naming one")
        }
    }

    @Test("has these rights on tables and columns, and no others")
    func tableRights() throws {
        let tables = try column(
            """
            SELECT c.relname || ' ' || p FROM pg_class AS c, unnest(string_to_array('SELECT INSERT UPDATE DELETE TRUNCATE REFERENCES TRIGGER', ' ')) AS p
             WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
               AND has_table_privilege('ieum_daemon', c.oid, p)
            """)
        #expect(tables == ["game_versions SELECT", "games SELECT", "server SELECT"])
        let columns = try column(
            """
            SELECT c.relname || '.' || a.attname || ' ' || p FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0,
                   unnest(string_to_array('SELECT INSERT UPDATE REFERENCES', ' ')) AS p
             WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
               AND has_column_privilege('ieum_daemon', c.oid, a.attnum, p) AND NOT has_table_privilege('ieum_daemon', c.oid, p)
            """)
        #expect(
            columns == [
                "devices.created SELECT", "devices.device_id SELECT", "devices.name SELECT", "devices.player_id SELECT",
                "devices.revoked SELECT", "players.last_revision SELECT", "players.player_id SELECT",
                "players.purged_before SELECT",
            ])
        let others = try column(
            """
            SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND has_schema_privilege('ieum_daemon', oid, 'CREATE')
            UNION ALL SELECT 'sequence ' || relname FROM pg_class WHERE relkind = 'S'
            UNION ALL SELECT 'member of ' || r.rolname FROM pg_roles AS r
                       WHERE r.rolname <> 'ieum_daemon' AND pg_has_role('ieum_daemon', r.oid, 'MEMBER')
            UNION ALL SELECT 'attribute of ' || rolname FROM pg_roles
                       WHERE rolname = 'ieum_daemon' AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)
            """)
        #expect(others == [])
    }

    @Test("may call these functions, which run as their owner; nobody else may")
    func functionRights() throws {
        let its = try column(
            """
            SELECT p.proname || '/' || p.pronargs FROM pg_proc AS p
             WHERE p.pronamespace = 'public'::regnamespace AND has_function_privilege('ieum_daemon', p.oid, 'EXECUTE')
               AND NOT has_function_privilege('public', p.oid, 'EXECUTE')
            """)
        #expect(
            its == [
                "begin_import/3", "begin_token/3", "cancel_abandoned_imports/1", "cancel_import/2", "check_devices/2",
                "create_pairing_code/4", "find_device/3", "finish_import/8", "last_revisions/1", "push_batch/11",
                "recent_session_ends/1", "redeem_pairing_code/5", "register_player/4", "register_player_by_invite/6",
                "rename_device/4", "revoke_device/3", "rotate_token/3", "stage_import/17", "sweep_session_ends/0",
            ])
        #expect(try column("SELECT f::oid::regproc::text FROM unnest(daemon_functions()) AS f").count == its.count)
        // Everybody's: they look inside a state that is handed to them, and read no table.
        let everybodys = try column(
            """
            SELECT DISTINCT p.proname FROM pg_proc AS p
             WHERE p.pronamespace = 'public'::regnamespace AND has_function_privilege('public', p.oid, 'EXECUTE')
            """)
        #expect(
            everybodys == [
                "differing_keys", "handle_board", "handle_game", "handle_rows", "hangul_word", "state_as_jsonb",
            ])
        let definers = try column(
            """
            SELECT p.proname || '/' || p.pronargs FROM pg_proc AS p
             WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef AND 'search_path=public, pg_temp' = ANY (p.proconfig)
            """)
        #expect(definers == its)
        #expect(
            try column("SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef").count
                == its.count)
        #expect(
            try column(
                "SELECT f::text FROM unnest(daemon_functions()) AS f WHERE has_function_privilege('ieum_reader', f, 'EXECUTE')"
            ) == [])
    }

    /// No clock would show it reliably, so the text of the functions is looked at.
    @Test(
        "finds out about a token or an invite in a time that tells nothing: salted digests of their digests are compared"
    )
    func constantTime() throws {
        let texts = try column(
            "SELECT prosrc FROM pg_proc WHERE proname IN ('find_device', 'register_player_by_invite')")
        #expect(texts.count == 2)
        for text in texts {
            let salted = #/sha256\(salt \|\| [\w.]+_hash(?:_in)?\)/#
            #expect(text.matches(of: salted).count >= 2, "\(text)")
            let rest = text.replacing(salted, with: "digest").replacing(#/--.*/#, with: "")
            #expect(
                rest.firstMatch(of: #/_hash(?:_in)?\b\s*(?:=|<>|!=|IN\b|IS\b)|(?:=|<>|!=|\bIN \()\s*[\w.]*_hash/#)
                    == nil, "\(rest)")
        }
    }

    @Test("stands before row level security on every table, the owner does not")
    func rowSecurity() throws {
        let without = try column(
            """
            SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relrowsecurity
            """)
        #expect(without == ["server"])
        #expect(try column("SELECT relname FROM pg_class WHERE relforcerowsecurity") == [])
        let policies = try column(
            "SELECT tablename || ' ' || permissive || ' ' || cmd || ' ' || array_to_string(roles, ',') FROM pg_policies"
        )
        #expect(
            policies == [
                "devices PERMISSIVE SELECT public", "game_versions PERMISSIVE SELECT public",
                "games PERMISSIVE SELECT public", "players PERMISSIVE SELECT public",
            ])
    }

    @Test("gets back exactly its rights when they are renewed, whatever was granted or taken")
    func renewal() throws {
        let database = try RuleDatabase()
        let connection = database.connection
        let rights = """
            SELECT string_agg(x, ' ' ORDER BY x) FROM (
                SELECT c.relname || c.relacl::text AS x FROM pg_class AS c WHERE c.relacl::text ~ 'ieum_daemon'
                UNION ALL SELECT a.attrelid::regclass || '.' || a.attname || a.attacl::text FROM pg_attribute AS a WHERE a.attacl::text ~ 'ieum_daemon'
                UNION ALL SELECT p.oid::regprocedure || p.proacl::text FROM pg_proc AS p WHERE p.proacl::text ~ 'ieum_daemon') AS r
            """
        let before = try connection.query(rights).text(0, 0)
        try connection.execute(
            """
            GRANT ALL ON ALL TABLES IN SCHEMA public TO ieum_daemon; GRANT SELECT (token_hash) ON devices TO ieum_daemon;
            GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO ieum_daemon;
            REVOKE ALL ON FUNCTION find_device(uuid, uuid, bytea) FROM ieum_daemon;
            GRANT EXECUTE ON FUNCTION push_batch TO PUBLIC;
            """)
        #expect(try connection.query(rights).text(0, 0) != before)
        #expect(try connection.query("SELECT grant_rights_to_daemon()").bool(0, 0))
        #expect(try connection.query(rights).text(0, 0) == before)
    }

    /// The sorted first column.
    private func column(_ sql: String) throws -> [String] {
        let rows = try Self.database.get().connect().query(
            "SELECT q.x::text FROM (\(sql)) AS q (x) ORDER BY q.x COLLATE \"C\"")
        return try (0..<rows.rowCount).map { try rows.text($0, 0) }
    }
}

extension PostgresType {
    /// Its name in SQL, for PREPARE.
    var sqlName: String {
        switch self {
        case .uuid: "uuid"
        case .bool: "boolean"
        case .text: "text"
        default: "bigint"
        }
    }
}
