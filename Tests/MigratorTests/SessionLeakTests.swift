import Foundation
import Postgres
import TestSupport
import Testing

@testable import Migrator

@Suite("Between two files")
struct SessionLeakTests {
    /// A plain file, so that its session is one that could be kept.
    private static let plain = "CREATE TABLE plain (x int);"

    /// One thing that a file leaves in its session, and a query that is true where nothing of it is to be seen.
    struct Leak: CustomTestStringConvertible, Sendable {
        var what: String
        var left: String
        var isGone: String
        var testDescription: String { what }

        init(_ what: String, _ left: String, _ isGone: String) {
            self.what = what
            self.left = left
            self.isGone = isGone
        }
    }

    static let leaks = [
        Leak("a setting", "SET work_mem = '7MB';", "current_setting('work_mem') <> '7MB'"),
        Leak("a time limit", "SET lock_timeout = '1ms';", "current_setting('lock_timeout') = '5s'"),
        Leak("a search path", "CREATE SCHEMA o; SET search_path = o;", "current_schema() = 'public'"),
        Leak(
            "a setting made in an expression", "CREATE TABLE t AS SELECT set_config('work_mem', '7MB', false);",
            "current_setting('work_mem') <> '7MB'"),
        Leak("a custom setting", "SET my.own = 'x';", "current_setting('my.own', true) IS NULL"),
        Leak(
            "a custom setting made in an expression",
            "CREATE TABLE t AS SELECT set_config('my.own', 'x', false);", "current_setting('my.own', true) IS NULL"),
        Leak(
            "a custom setting made by a default",
            "CREATE TABLE t (x int, y text DEFAULT pg_catalog.\"set_config\"('my.own', 'x', false));",
            "current_setting('my.own', true) IS NULL"),
        Leak(
            "a custom setting made by a trigger",
            """
            CREATE TABLE t (x int);
            CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN SET my.own = 'x'; RETURN NEW; END$$;
            CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();
            """, "current_setting('my.own', true) IS NULL"),
        Leak(
            "a custom setting made by a rule's SQL function",
            """
            CREATE TABLE t (x int);
            CREATE FUNCTION f() RETURNS text LANGUAGE sql BEGIN ATOMIC SELECT set_config('my.own', 'x', false); END;
            CREATE RULE r AS ON INSERT TO t DO ALSO SELECT f();
            """, "current_setting('my.own', true) IS NULL"),
        Leak("a temporary table", "CREATE TEMP TABLE leaked (x int);", "to_regclass('leaked') IS NULL"),
        Leak(
            "a temporary view of a plain table", "CREATE OR REPLACE TEMPORARY VIEW leaked AS SELECT 1 AS x;",
            "to_regclass('leaked') IS NULL"),
        Leak(
            "a prepared statement", "PREPARE p AS SELECT 1;",
            "NOT EXISTS (SELECT FROM pg_prepared_statements WHERE name = 'p')"),
        Leak(
            "a cursor", "DECLARE c CURSOR WITH HOLD FOR SELECT 1;",
            "NOT EXISTS (SELECT FROM pg_cursors WHERE name = 'c')"),
        Leak(
            "an advisory lock", "CREATE TABLE t AS SELECT pg_advisory_lock(77) IS NULL AS x;",
            "NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND pid = pg_backend_pid())"),
        Leak("a channel", "LISTEN news;", "NOT EXISTS (SELECT FROM pg_listening_channels())"),
        Leak("a role", "SET ROLE pg_monitor;", "current_user = session_user AND current_setting('role') = 'none'"),
        Leak(
            "another login", "SET SESSION AUTHORIZATION pg_monitor;",
            "session_user <> 'pg_monitor' AND current_user = session_user"),
    ]

    @Test("nothing is to be seen of it in the next file", arguments: leaks)
    func leak(_ leak: Leak) throws {
        let bench = try Bench([
            "1_plain.sql": Self.plain, "2_left.sql": leak.left,
            // Where a table was made, its own code runs in a file that looks plain.
            "3_plain.sql": leak.left.contains("TABLE t (")
                ? "INSERT INTO t (x) VALUES (1);" : "INSERT INTO plain VALUES (1);",
            "4_seen.sql": "CREATE TABLE seen AS SELECT (\(leak.isGone)) AS is_gone;",
        ])
        #expect(try bench.up().count == 4)
        #expect(try bench.value("SELECT is_gone FROM seen") == "t")
        // The check itself can fail: in one session, what was left is seen.
        let session = try bench.database.connect()
        try session.execute(
            "DROP TABLE plain, seen; DROP TABLE IF EXISTS t CASCADE; DROP SCHEMA IF EXISTS o; DROP SEQUENCE IF EXISTS s"
        )
        try session.execute("DROP FUNCTION IF EXISTS f(); SET lock_timeout = '5s'; \(Self.plain)")
        try session.execute(leak.left)
        if leak.left.contains("TABLE t (") { try session.execute("INSERT INTO t (x) VALUES (1)") }
        let seen = try session.execute("SELECT (\(leak.isGone))").last
        #expect(try seen?.text(0, 0) == "f")
    }

    @Test("a sequence's last value is not known in the next file")
    func sequence() throws {
        let bench = try Bench([
            "1_plain.sql": "CREATE SEQUENCE s; CREATE TABLE t (x bigint);",
            "2_left.sql": "INSERT INTO t VALUES (nextval('s'));",
            "3_seen.sql": "INSERT INTO t VALUES (lastval());",
        ])
        #expect(try bench.failure()?.problems.first?.sqlState == "55000")
    }

    @Test("random numbers do not follow from the seed that a file set")
    func seed() throws {
        let bench = try Bench([
            "1_plain.sql": Self.plain, "2_left.sql": "CREATE TABLE t AS SELECT setseed(0.5) IS NULL AS x;",
            "3_seen.sql": "CREATE TABLE seen AS SELECT random() AS value;",
        ])
        #expect(try bench.up().count == 3)
        let session = try bench.database.connect()
        try session.execute("CREATE TABLE u AS SELECT setseed(0.5) IS NULL AS x")
        try session.execute("CREATE TABLE seeded AS SELECT random() AS value")
        #expect(try bench.value("SELECT seen.value = seeded.value FROM seen, seeded") == "f")
    }

    @Test("what ALTER DATABASE sets holds from the next file on")
    func databaseSettings() throws {
        let bench = try Bench([
            "1_plain.sql": Self.plain,
            "3_seen.sql": "CREATE TABLE seen AS SELECT current_setting('work_mem') AS value;",
        ])
        try bench.write("2_set.sql", "ALTER DATABASE \(bench.database.name) SET work_mem = '7MB';")
        #expect(try bench.up().count == 3)
        #expect(try bench.value("SELECT value FROM seen") == "7MB")
    }

    @Test("plain files share a session that is reset; a file that is not plain has one of its own")
    func sharing() throws {
        let pid = "INSERT INTO pids (pid) VALUES (pg_backend_pid());"
        let bench = try Bench([
            "1_a.sql": "CREATE TABLE pids (pid int, n serial);", "2_b.sql": pid, "3_c.sql": pid,
            "4_d.sql": "SET work_mem = '7MB'; \(pid)", "5_e.sql": pid,
            "6_f.sql": "-- migrate: no-transaction\n\(pid)", "7_g.sql": pid, "8_h.sql": pid,
        ])
        #expect(try bench.up().count == 8)
        let pids = try bench.rows("SELECT pid FROM pids ORDER BY n")
        // In b to h: d comes into the clean session of c and is the last in it; f neither takes one nor leaves one.
        try #require(pids.count == 7)
        #expect(pids[0] == pids[1] && pids[1] == pids[2] && pids[5] == pids[6])
        #expect(Set(pids).count == 4)
    }

    @Test("a notice names its own file in a session that is shared")
    func notices() throws {
        let bench = try Bench([
            "1_a.sql": "DROP TABLE IF EXISTS one;", "2_b.sql": "DROP TABLE IF EXISTS two;",
        ])
        try bench.up()
        let named = bench.events.withLock { $0 }.compactMap { event in
            if case .notice(let file, _, let message) = event { "\(file) \(message)" } else { nil }
        }
        #expect(
            named.count == 2 && named[0].hasPrefix("1_a.sql table \"one\"")
                && named[1].hasPrefix("2_b.sql table \"two\""))
    }

    @Test(
        "a file is plain only when every statement is known to leave nothing",
        arguments: [
            ("CREATE TABLE a (x int); INSERT INTO a VALUES (1), (lower('B'));", true), ("SELECT 1;", true), ("", true),
            ("CREATE UNIQUE INDEX i ON t (x); COMMENT ON TABLE t IS 'x';", true), ("SELECT f();", false),
            ("CREATE TABLE a (x int); SET work_mem = '1MB';", false), ("DO $$BEGIN END$$", false), ("CALL p()", false),
            ("LOAD 'auto_explain'", false), ("CREATE EXTENSION citext", false),
            ("ALTER SYSTEM SET work_mem = 1", false),
            ("ALTER ROLE a SET work_mem = '1MB'", false), ("ALTER DATABASE a SET work_mem = '1MB'", false),
            ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", false),
            ("WITH a AS (SELECT 1) SELECT * FROM a", false),
            ("INSERT INTO a SELECT Set_Config('a.b', 'c', false)", false),
            ("UPDATE a SET x = \"set_config\"('a.b', '', true)", false),
            ("INSERT INTO a VALUES (U&\"set\\005fconfig\"('a.b', '', false))", false),
            ("CREATE TEMP TABLE a (x int)", false),
            ("CREATE TABLE pg_temp.a (x int)", false), ("EXPLAIN SELECT 1", false), ("frobnicate", false),
        ])
    func plainness(text: String, isPlain: Bool) {
        let bytes = Array(text.utf8)
        #expect(SQLScript(bytes).isPlain(bytes) == isPlain)
    }

    @Test("a thousand files are applied, each once and in order")
    func manyFiles() throws {
        var files = [(name: "10000_log.sql", contents: "CREATE TABLE log (n int, at serial);")]
        for number in 1..<1000 {
            let isTable = number.isMultiple(of: 10)
            let contents = isTable ? "CREATE TABLE t\(number) (x int PRIMARY KEY); " : ""
            files.append(("\(10_000 + number)_file.sql", contents + "INSERT INTO log VALUES (\(number));"))
        }
        let database = try TestDatabase.make()
        let migrator = Migrator(set: try MigrationSet(name: "test", embedded: files), database: database.conninfo)
        #expect(try migrator.up().applied.count == 1000)
        let found = try database.connect().execute(
            "SELECT count(*), bool_and(n = at), (SELECT count(*) FROM schema_migrations) FROM log"
        ).last
        #expect(try found?.text(0, 0) == "999" && found?.text(0, 1) == "t" && found?.text(0, 2) == "1000")
        #expect(try migrator.up().applied.isEmpty)
    }
}
