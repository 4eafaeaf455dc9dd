import Foundation
import Testing
import TestSupport

@testable import Migrator

@Suite("up")
struct UpTests {
    @Test("applies what is pending in order, remembers it, and then finds nothing to do")
    func applies() throws {
        let bench = try Bench(["0001_a.sql": "CREATE TABLE a (x int);", "0002_b.sql": "INSERT INTO a VALUES (1), (2);"])
        #expect(try bench.migrator().status().rows.map(\.state) == [.pending, .pending])
        #expect(try bench.up() == ["0001_a.sql", "0002_b.sql"])
        #expect(try bench.up() == [])
        #expect(try bench.value("SELECT count(*) FROM a") == "2")
        let status = try bench.migrator().status()
        #expect(status.isCurrent)
        let row = try #require(status.rows.first?.history)
        #expect(row.applicationVersion == "1.2.3" && row.mode == .transaction && !row.appliedBy.isEmpty)
        #expect(abs(Double(row.appliedAt) / 1e6 - Date().timeIntervalSince1970) < 600)
    }

    @Test("stops at the version asked for, and refuses one that is not there")
    func target() throws {
        let bench = try Bench(["1_a.sql": "SELECT 1", "2_b.sql": "SELECT 2", "3_c.sql": "SELECT 3"])
        let second = try #require(Version("2"))
        #expect(try bench.migrator().up(to: second).applied.map(\.name) == ["1_a.sql", "2_b.sql"])
        #expect(try bench.migrator().up(to: second).applied == [])
        let error = #expect(throws: MigrationError.self) { try bench.migrator().up(to: Version("9")) }
        #expect(error?.exitCode == 2)
        #expect(try bench.up() == ["3_c.sql"])
    }

    @Test("a failing file leaves no trace, those before it stay, and mending it is enough")
    func failure() throws {
        let bench = try Bench([
            "0001_a.sql": "CREATE TABLE a (x int);",
            "0002_b.sql": "CREATE TABLE b (x int);\nINSERT INTO b VALUES (1);\nSELECT nope FROM b;",
        ])
        let error = try #require(try bench.failure())
        #expect(error.exitCode == 1)
        #expect(
            error.description == """
                0002_b.sql:3:8: ERROR 42703: column "nope" does not exist
                    SELECT nope FROM b;
                           ^
                """)
        #expect(try bench.history == ["test|0001_a.sql|applied|transaction"])
        #expect(try bench.value("SELECT to_regclass('b')") == "")
        try bench.write("0002_b.sql", "CREATE TABLE b (x int);")
        #expect(try bench.up() == ["0002_b.sql"])
    }

    @Test("LF or CR LF is the same file; one changed letter is refused by name, and nothing is run")
    func checksums() throws {
        let bench = try Bench(["0001_a.sql": "CREATE TABLE a (x int);\nCREATE TABLE b (x int);\n"])
        try bench.up()
        try bench.write("0001_a.sql", "CREATE TABLE a (x int);\r\nCREATE TABLE b (x int);\r\n")
        #expect(try bench.up() == [])
        try bench.write("0001_a.sql", "CREATE TABLE a (y int);\nCREATE TABLE b (x int);\n")
        try bench.write("0002_c.sql", "CREATE TABLE c (x int);")
        let error = try #require(try bench.failure())
        #expect(error.exitCode == 3 && error.problems.map(\.file) == ["0001_a.sql"])
        #expect(try bench.value("SELECT to_regclass('c')") == "")
    }

    @Test("a late file is refused by name, and runs when its version is allowed")
    func outOfOrder() throws {
        let bench = try Bench(["1_a.sql": "SELECT 1", "3_c.sql": "SELECT 3"])
        try bench.up()
        try bench.write("2_b.sql", "SELECT 2")
        let second = Set([try #require(Version("2"))])
        let error = try #require(try bench.failure())
        #expect(error.exitCode == 3 && error.problems.map(\.file) == ["2_b.sql"])
        #expect(try bench.up { $0.allowedOutOfOrder = second } == ["2_b.sql"])
        #expect(try bench.migrator().status().isCurrent)
    }

    @Test("a program older than the database is refused")
    func ahead() throws {
        let bench = try Bench(["1_a.sql": "SELECT 1", "2_b.sql": "SELECT 2"])
        try bench.up()
        try bench.remove("2_b.sql")
        #expect(try bench.migrator().status().isAhead)
        let error = try #require(try bench.failure())
        #expect(error.exitCode == 3 && error.description.contains("database is ahead"))
        #expect(error.description.contains("1.2.3"))
    }

    @Test("a new value of an enum can be used by the next file of the same run")
    func enumValue() throws {
        let bench = try Bench([
            "1_a.sql": "CREATE TYPE mood AS ENUM ('sad'); CREATE TABLE m (mood mood);",
            "2_b.sql": "ALTER TYPE mood ADD VALUE 'happy';", "3_c.sql": "INSERT INTO m VALUES ('happy');",
        ])
        #expect(try bench.up().count == 3)
        try bench.write("4_d.sql", "ALTER TYPE mood ADD VALUE 'calm'; INSERT INTO m VALUES ('calm');")
        let error = try #require(try bench.failure())
        #expect(error.problems.first?.sqlState == "55P04" && error.description.contains("next file"))
    }

    @Test("nothing that a file sets leaks into the next, and the history is written all the same")
    func leaks() throws {
        let role = "leaky_\(UInt32.random(in: 0 ... .max))"
        let bench = try Bench([
            "1_a.sql": "CREATE ROLE \(role); CREATE SCHEMA other; GRANT ALL ON SCHEMA other TO \(role);",
            "2_b.sql":
                "SET search_path = other; SET ROLE \(role); SET lock_timeout = '1ms'; CREATE TABLE here (x int);",
            "3_c.sql": "SET SESSION AUTHORIZATION \(role); CREATE TEMP TABLE t (x int);",
            "4_d.sql": "CREATE TABLE t (x int);",
            "5_e.sql": "SELECT pg_advisory_unlock_all(); RESET ALL; SET client_encoding = 'LATIN1';",
            "6_f.sql":
                "-- migrate: no-transaction\nDISCARD ALL; SET ROLE \(role); SET search_path = other; CREATE TABLE there (x int);",
            "7_g.sql": "DROP OWNED BY \(role); DROP ROLE \(role);",
        ])
        #expect(try bench.up().count == 7)
        #expect(
            try bench.value("SELECT to_regclass('public.t') IS NOT NULL AND to_regclass('public.here') IS NULL") == "t")
        #expect(try Set(bench.rows("SELECT applied_by FROM schema_migrations")).count == 1)
    }

    @Test("after a dump that empties the search path, an unqualified CREATE in the next file works")
    func dumpAsFirst() throws {
        let bench = try Bench([
            "0001_dump.sql": """
            SET statement_timeout = 0;
            SET client_encoding = 'UTF8';
            SET standard_conforming_strings = on;
            SELECT pg_catalog.set_config('search_path', '', false);
            SET check_function_bodies = false;
            SET row_security = off;
            CREATE TABLE public.a (x integer);
            """,
            "0002_next.sql": "CREATE TABLE b (x int);",
        ])
        #expect(try bench.up().count == 2)
        #expect(try bench.value("SELECT to_regclass('public.b') IS NOT NULL") == "t")
    }

    @Test("a deferred constraint that fails at COMMIT fails the file")
    func deferredConstraint() throws {
        let bench = try Bench([
            "1_a.sql": """
            CREATE TABLE a (id int PRIMARY KEY, other int REFERENCES a DEFERRABLE INITIALLY DEFERRED);
            INSERT INTO a VALUES (1, 2);
            """
        ])
        let error = try #require(try bench.failure())
        #expect(
            error.exitCode == 1 && error.problems.first?.sqlState == "23503" && error.problems.first?.file == "1_a.sql")
        #expect(try bench.history == [])
        #expect(try bench.value("SELECT to_regclass('a')") == "")
    }

    @Test("an error without a position is shown at the statement that failed, with detail and context")
    func places() throws {
        let bench = try Bench([
            "1_a.sql":
                "CREATE TABLE a (x int UNIQUE);\n\n-- twice\nINSERT INTO a VALUES (7);\n  INSERT INTO a\n  VALUES (7);\n"
        ])
        let error = try #require(try bench.failure())
        #expect(error.description.hasPrefix("1_a.sql:5:3: ERROR 23505: duplicate key"))
        #expect(error.description.contains("DETAIL: Key (x)=(7) already exists."))
        try bench.write("1_a.sql", "/* 한글 */ DO $$\nBEGIN\n  PERFORM 1 / 0;\nEND $$;")
        let inside = try #require(try bench.failure())
        #expect(inside.description.hasPrefix("1_a.sql:1:10: ERROR 22012: division by zero\n"))
        #expect(inside.description.contains("CONTEXT: "))
        #expect(inside.description.contains("line 3"))
    }

    @Test("a position after characters of several bytes is the right column")
    func columns() throws {
        let bench = try Bench(["1_a.sql": "SELECT '한글 🟩';\r\nSELECT '한글', nope;"])
        #expect(
            try bench.failure()?.problems.first?.location
                == SourceLocation(line: 2, column: 14, text: "SELECT '한글', nope;"))
    }

    @Test(
        "what cannot be run is refused beforehand, all of it with its line, and nothing is run",
        arguments: [
            ("SELECT 1;\nCOMMIT;", 2, "COMMIT in a migration"), ("BEGIN;", 1, "BEGIN in a migration"),
            ("\n\n start transaction;", 3, "START TRANSACTION"), ("ROLLBACK;", 1, "ROLLBACK in a migration"),
            ("ABORT", 1, "ABORT"), ("END;", 1, "END"), ("PREPARE TRANSACTION 'x'", 1, "PREPARE TRANSACTION"),
            ("\\restrict abc\nSELECT 1;", 1, "\\restrict is a command of psql"),
            ("SELECT 1;\n\\i other.sql", 2, "\\i is a command of psql"), ("SELECT 1 \\gexec", 1, "\\gexec"),
            ("CREATE TABLE t (a int);\nCOPY t (a) FROM STDIN;\n1\n\\.\n", 2, "COPY with data"),
            ("COPY (SELECT 1) TO STDOUT", 1, "COPY to the client"), ("SELECT 'a", 1, "has no end"),
            ("SELECT 1; /* /* */", 1, "has no end"), ("\nDO $x$ BEGIN $y$;", 2, "has no end"),
            ("SELECT 1;\n-- migrate: no-transaction", 2, "first line"),
        ])
    func refused(text: String, line: Int, message: String) throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE a (x int);", "2_b.sql": text])
        let error = try #require(try bench.failure())
        #expect(error.exitCode == 1)
        #expect(error.problems.count == 1 && error.problems.first?.location?.line == line, "\(error)")
        #expect(error.problems.first?.message.contains(message) == true, "\(error)")
        #expect(try bench.value("SELECT to_regclass('a')") == "")
    }

    @Test("savepoints are a file's own business")
    func savepoints() throws {
        let bench = try Bench([
            "1_a.sql": "SAVEPOINT s; CREATE TABLE a (x int); ROLLBACK TO SAVEPOINT s; ROLLBACK WORK TO s; RELEASE s;"
        ])
        #expect(try bench.up().count == 1)
    }

    @Test("notices are told with their file, at their severity")
    func notices() throws {
        let bench = try Bench(["1_a.sql": "DO $$ BEGIN RAISE NOTICE 'hello'; RAISE WARNING 'beware'; END $$;"])
        try bench.up()
        #expect(
            bench.events.withLock { $0 }.filter { if case .notice = $0 { true } else { false } } == [
                .notice(file: "1_a.sql", severity: "NOTICE", message: "hello"),
                .notice(file: "1_a.sql", severity: "WARNING", message: "beware"),
            ])
    }

    @Test("two sets share a history, and two schemas of a database have one each")
    func setsAndSchemas() throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE IF NOT EXISTS a (x int);"])
        #expect(try bench.migrator(set: "one").up().applied.count == 1)
        #expect(try bench.migrator(set: "two").up().applied.count == 1)
        #expect(try bench.history == ["one|1_a.sql|applied|transaction", "two|1_a.sql|applied|transaction"])
        #expect(try bench.rows("CREATE SCHEMA tenant") == [])
        let tenant = Migrator(
            set: try MigrationSet(name: "one", directory: bench.path),
            database: bench.database.conninfo + " options='-c search_path=tenant'")
        #expect(try tenant.up().applied.count == 1)
        #expect(try bench.value("SELECT to_regclass('tenant.a') IS NOT NULL") == "t")
        #expect(try bench.value("SELECT count(*) FROM tenant.schema_migrations") == "1")
        let missing = #expect(throws: MigrationError.self) { try bench.migrator { $0.historySchema = "nowhere" }.up() }
        #expect(missing?.exitCode == 4)
    }
}
