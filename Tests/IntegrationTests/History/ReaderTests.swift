import Foundation
import Migrator
import Postgres
import SyncServer
import TestSupport
import Testing

@Suite("the role ieum_reader")
struct ReaderTests {
    @Test("reads every view, and no table, token, code, hash or function that touches them")
    func rights() throws {
        let history = try HandleHistory.played()
        let reader = try BlockingConnection(history.database.conninfo, sessionSettings: ["role": "ieum_reader"])
        let views = try history.column("SELECT unnest(grant_views_to_reader())")
        #expect(views.count == 9)
        for view in views { _ = try reader.query("SELECT count(*) FROM \(view)") }
        let tables = try history.column(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
        #expect(tables.contains("devices") && tables.contains("pairing_codes"))
        #expect(Set(tables).isSuperset(of: ["invites", "token_rotations", "session_ends"]))
        #expect(tables.contains("schema_migrations"))
        let id = history.player
        let denied =
            tables.flatMap { ["SELECT FROM \($0)", "DELETE FROM \($0)", "TABLE \($0)", "COPY \($0) TO STDOUT"] } + [
                "SELECT token_hash FROM devices", "UPDATE devices SET revoked = NULL",
                "SELECT push('\(id)', ARRAY['\(id)'::uuid], ARRAY['\(id)'::uuid], ARRAY['g'], ARRAY['g'], ARRAY[now()], ARRAY[0], ARRAY[1], ARRAY['{}'::json])",
                "SELECT register_player(gen_random_uuid(), gen_random_uuid(), 'x', sha256('x'))",
                "SELECT create_pairing_code('\(id)', 'ABCD', sha256('x'))",
                "SELECT redeem_pairing_code('ABCD', sha256('x'), gen_random_uuid(), 'x', sha256('x'))",
                "SELECT register_player_by_invite('ABCD', sha256('x'), gen_random_uuid(), gen_random_uuid(), 'x', sha256('x'))",
                "SELECT create_pairing_code('\(id)', '\(id)', 'ABCD', sha256('x'))",
                "SELECT rename_device('\(id)', '\(id)', '\(id)', 'x')",
                "SELECT revoke_device('\(id)', '\(id)')", "SELECT rotate_token('\(id)', '\(id)', sha256('x'))",
                "SELECT begin_token('\(id)', '\(id)', sha256('x'))", "SELECT begin_forgetting('\(id)')",
                "SELECT forget_versions('\(id)', 1)", "SELECT finish_forgetting('\(id)')",
                "SELECT prune_versions(now(), 0, '\(id)', 0, 10, true)", "SELECT grant_views_to_reader()",
                "DELETE FROM history", "UPDATE current_games SET revision = 1", "CREATE TABLE own (a int)",
            ]
        for statement in denied {
            let error = #expect(throws: DatabaseError.self, "\(statement)") { try reader.execute(statement) }
            #expect(
                error?.sqlState == .insufficientPrivilege || error?.sqlState == SQLState(rawValue: "55000")
                    || error?.kind == .protocol, "\(statement): \(String(describing: error))")
        }
        // No view has a column of these, whatever else it joins.
        let secret = try history.column(
            """
            SELECT table_name || '.' || column_name FROM information_schema.columns
             WHERE table_name = ANY (grant_views_to_reader()) AND (data_type = 'bytea' OR column_name ~ 'hash|token|code|secret|locator')
            """)
        #expect(secret == [])
        // No view has a column with a hash in it, whatever its name.
        let hashes = try history.column("SELECT encode(token_hash, 'hex') FROM devices")
        for view in views {
            let text = try reader.execute("SELECT string_agg(v::text, ' ') FROM \(view) AS v").last?.text(0, 0) ?? ""
            for hash in hashes { #expect(!text.contains(hash), "\(view)") }
        }
    }

    @Test("grant-reader lets a role read, renews what is missing, and says what is wrong")
    func grantReader() throws {
        let cluster = try TestCluster.start(durable: false)
        let database = try TestDatabase.make(on: cluster)
        let place = ["--database", database.conninfo]
        func run(_ role: String...) throws -> (status: Int32, output: String, error: String) {
            try Programs.run("ieumd", ["grant-reader"] + role + place)
        }
        let tooEarly = try run()
        #expect(tooEarly.status == 4 && tooEarly.error.contains("ieumd migrate up"), "\(tooEarly)")
        #expect(try Programs.run("ieumd", ["migrate", "up"] + place).status == 0)
        let missing = try run("odd\"name")
        #expect(missing.status == 2 && missing.error.contains(#"CREATE ROLE "odd""name" LOGIN"#), "\(missing)")
        let connection = try database.connect()
        // As after a dump that came from another server: no role, no grants.
        try connection.execute(#"DROP OWNED BY ieum_reader; DROP ROLE ieum_reader; CREATE ROLE "odd""name" LOGIN"#)
        let granted = try run("odd\"name")
        #expect(granted.status == 0 && granted.error == "" && granted.output.contains("history"), "\(granted)")
        let settings = database.conninfo + #" user='odd"name'"#
        let analyst = try BlockingConnection(settings)
        #expect(try analyst.query("SELECT count(*) FROM history").int8(0, 0) == 0)
        #expect(throws: DatabaseError.self) { try analyst.execute("TABLE devices") }
        #expect(try run("odd\"name").status == 0)
        try connection.execute("GRANT SELECT ON devices TO \"odd\"\"name\"")
        #expect(try run("odd\"name").error.contains("may read or write the tables as well"))
    }

    @Test("the migration works where roles may not be made, and says so")
    func noRoleAllowed() throws {
        let cluster = try TestCluster.start(durable: false)
        try cluster.administrate("CREATE ROLE plain LOGIN")
        let database = try TestDatabase.make(on: cluster)
        try cluster.administrate("ALTER DATABASE \(database.name) OWNER TO plain")
        let result = try Programs.run(
            "ieumd", ["migrate", "up", "--verbose", "--database", database.conninfo + " user=plain"])
        #expect(result.status == 0 && result.error.contains("the role ieum_reader was not made"), "\(result.error)")
        let refused = try Programs.run("ieumd", ["grant-reader", "--database", database.conninfo + " user=plain"])
        #expect(refused.status == 4 && refused.error.contains("CREATEROLE"), "\(refused)")
        #expect(try Programs.run("ieumd", ["grant-reader", "--database", database.conninfo]).status == 0)
        let reader = try BlockingConnection(database.conninfo, sessionSettings: ["role": "ieum_reader"])
        _ = try reader.query("SELECT count(*) FROM conflicts")
    }

    @Test("databases of one server that are migrated at once all get the role")
    func concurrently() async throws {
        let cluster = try TestCluster.start(durable: false)
        let databases = try (0..<6).map { _ in try TestDatabase.make(on: cluster) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for database in databases {
                let conninfo = database.conninfo
                group.addTask {
                    try await aside {
                        _ = try Migrator(
                            set: MigrationSet(name: "ieum", embedded: EmbeddedMigrations.files), database: conninfo
                        ).up()
                    }
                }
            }
            try await group.waitForAll()
        }
        for database in databases {
            let reader = try BlockingConnection(database.conninfo, sessionSettings: ["role": "ieum_reader"])
            #expect(try reader.query("SELECT count(*) FROM history").int8(0, 0) == 0)
        }
    }
}
