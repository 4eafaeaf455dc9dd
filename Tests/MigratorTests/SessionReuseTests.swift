import Postgres
import TestSupport
import Testing

@testable import Migrator

/// What one file leaves in its session is not there for the next, whether that gets a new session or the same one.
@Suite("Between two files")
struct SessionReuseTests {
    /// A table of the processes that ran each file, filled by the files themselves.
    private static let witness = "INSERT INTO seen (pid) VALUES (pg_backend_pid());"

    private func bench(_ first: String, _ second: String) throws -> Bench {
        try Bench([
            "0001_table.sql": """
            CREATE TABLE seen (pid int, note text);
            CREATE SEQUENCE numbers;
            CREATE FUNCTION run(text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE $1; RETURN 1; END $$;
            """,
            "0002_first.sql": Self.witness + "\n" + first, "0003_second.sql": Self.witness + "\n" + second,
        ])
    }

    private func sessions(_ bench: Bench) throws -> Int? {
        try Int(bench.value("SELECT count(DISTINCT pid) FROM seen"))
    }

    @Test("plain files share a session")
    func shared() throws {
        var files = ["0001_seen.sql": "CREATE TABLE seen (pid int);"]
        for number in 2...9 { files["000\(number)_file.sql"] = "CREATE TABLE t\(number) (x int); " + Self.witness }
        let bench = try Bench(files)
        #expect(try bench.up().count == 9)
        #expect(try sessions(bench) == 1)
    }

    @Test(
        "nothing leaks where the session is kept",
        arguments: [
            // A temporary table.
            ("CREATE TABLE pg_temp.t (x int);", "CREATE TABLE t (x int); INSERT INTO public.t VALUES (1);"),
            // The value that a sequence gave last.
            (
                "INSERT INTO seen (pid) VALUES (nextval('numbers'));",
                "CREATE TABLE fails AS SELECT run('SELECT lastval()');"
            ),
        ])
    func kept(first: String, second: String) throws {
        let bench = try bench(first, second)
        if second.contains("fails") {
            let error = try #require(try bench.failure())
            #expect(error.problems.first?.sqlState == "55000", "\(error)")
        } else {
            #expect(try bench.up().count == 3)
            #expect(try sessions(bench) == 1)
        }
    }

    @Test(
        "nothing leaks that a plain statement's function did behind our back",
        arguments: [
            ("SET app.tenant = 'x'", "current_setting('app.tenant', true) IS NULL"),
            ("SET search_path = pg_catalog", "current_setting('search_path') <> 'pg_catalog'"),
            ("SET lock_timeout = '77ms'", "current_setting('lock_timeout') = '5s'"),
            ("SET statement_timeout = '77s'", "current_setting('statement_timeout') = '0'"),
            ("PREPARE p AS SELECT 1", "NOT EXISTS (SELECT FROM pg_prepared_statements)"),
            (
                "SELECT pg_advisory_lock(77)",
                "NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = 0 AND objid = 77 AND pid = pg_backend_pid())"
            ),
            ("CREATE TEMP TABLE t ()", "to_regclass('pg_temp.t') IS NULL"),
            ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", "NOT EXISTS (SELECT FROM pg_cursors WHERE name = 'c')"),
            ("LISTEN news", "NOT EXISTS (SELECT FROM pg_listening_channels())"),
        ])
    func behind(statement: String, claim: String) throws {
        let bench = try bench(
            "INSERT INTO seen (pid) VALUES (run($$\(statement)$$) - 1);",
            "INSERT INTO seen (pid, note) VALUES (0, (\(claim))::text);")
        #expect(try bench.up().count == 3)
        #expect(try bench.value("SELECT note FROM seen WHERE note IS NOT NULL") == "true")
    }

    @Test(
        "nothing leaks from a statement that makes the next file take a new session",
        arguments: [
            ("SET app.tenant = 'x';", "current_setting('app.tenant', true) IS NULL"),
            (
                "SET ROLE pg_read_all_data; RESET ROLE; SET search_path = public, pg_temp;",
                "current_setting('search_path') !~ 'temp'"
            ),
            ("SELECT pg_advisory_lock(78);", "pg_try_advisory_lock(78)"),
            ("PREPARE p AS SELECT 1;", "NOT EXISTS (SELECT FROM pg_prepared_statements)"),
            ("LISTEN news;", "NOT EXISTS (SELECT FROM pg_listening_channels())"),
            ("DO $$ BEGIN PERFORM set_config('app.x', '1', false); END $$;", "current_setting('app.x', true) IS NULL"),
            ("CREATE TEMP TABLE t ();", "to_regclass('pg_temp.t') IS NULL"),
        ])
    func fresh(statement: String, claim: String) throws {
        let bench = try bench(statement, "INSERT INTO seen (pid, note) VALUES (0, (\(claim))::text);")
        #expect(try bench.up().count == 3)
        #expect(try bench.value("SELECT note FROM seen WHERE note IS NOT NULL") == "true")
        #expect(try bench.value("SELECT count(DISTINCT pid) FROM seen WHERE pid <> 0") == "2")
    }

    @Test("a setting of the database or of the role that a file changes holds in the next file")
    func databaseSettings() throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE seen (note text);"])
        try bench.write("2_b.sql", "ALTER DATABASE \(bench.database.name) SET app.tenant = 'x';")
        try bench.write("3_c.sql", "INSERT INTO seen VALUES (current_setting('app.tenant'));")
        #expect(try bench.up().count == 3)
        #expect(try bench.value("SELECT note FROM seen") == "x")
    }

    @Test("a login's default role holds in every file")
    func defaultRole() throws {
        let owner = "owner_\(UInt32.random(in: 0 ... .max))"
        let login = "login_\(UInt32.random(in: 0 ... .max))"
        let bench = try Bench([
            "1_a.sql": "CREATE TABLE a ();", "2_b.sql": "CREATE TABLE b ();", "3_c.sql": "CREATE TABLE c ();",
        ])
        _ = try bench.rows(
            """
            CREATE ROLE \(owner); CREATE ROLE \(login) LOGIN IN ROLE \(owner); ALTER ROLE \(login) SET role = \(owner);
            GRANT ALL ON SCHEMA public TO \(owner), \(login);
            """)
        let migrator = Migrator(
            set: try MigrationSet(name: "test", directory: bench.path),
            database: bench.database.conninfo + " user=\(login)")
        #expect(try migrator.up().applied.count == 3)
        let owners = try bench.rows("SELECT DISTINCT tableowner FROM pg_tables WHERE tablename IN ('a', 'b', 'c')")
        #expect(owners == [owner])
        _ = try bench.rows("DROP OWNED BY \(owner), \(login); DROP ROLE \(owner), \(login)")
    }

    @Test("notices in a kept session name the file that runs")
    func notices() throws {
        let bench = try Bench([
            "1_a.sql": "CREATE TABLE a ();", "2_b.sql": "CREATE TABLE IF NOT EXISTS a ();",
            "3_c.sql": "DROP TABLE IF EXISTS nothing;",
        ])
        try bench.up()
        let files = bench.events.withLock { $0 }.compactMap {
            if case .notice(let file, _, _) = $0 { file } else { nil }
        }
        #expect(files == ["2_b.sql", "3_c.sql"])
    }

    @Test("a thousand files are applied, and then there is nothing to do")
    func thousand() throws {
        let bench = try Bench()
        for number in 1...1000 {
            let version = String(String(10_000 + number).dropFirst())
            try bench.write("\(version)_t.sql", "CREATE TABLE t\(number) (id int PRIMARY KEY, name text);")
        }
        #expect(try bench.up().count == 1000)
        #expect(try bench.up() == [])
        #expect(try bench.value("SELECT count(*) FROM schema_migrations WHERE state = 'applied'") == "1000")
    }
}
