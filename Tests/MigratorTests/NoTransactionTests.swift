import Foundation
import Postgres
import TestSupport
import Testing

@testable import Migrator

@Suite("A file without a transaction")
struct NoTransactionTests {
    private static let directive = "-- migrate: no-transaction\n"

    /// A table with rows, and then a file of several statements.
    private func bench(_ text: String) throws -> Bench {
        try Bench([
            "1_a.sql": "CREATE TABLE a (x int, y int); INSERT INTO a SELECT i, i % 10 FROM generate_series(1, 100) i;",
            "2_b.sql": Self.directive + text,
        ])
    }

    @Test("runs what no transaction can hold, each statement once, and records it")
    func runs() throws {
        let bench = try bench(
            """
            CREATE INDEX CONCURRENTLY a_x ON a (x);
            CREATE TABLE log (t text); INSERT INTO log VALUES ('once');
            VACUUM a;
            DO $$ BEGIN FOR i IN 1..3 LOOP UPDATE a SET y = y + 1 WHERE x = i; COMMIT; END LOOP; END $$;
            DROP INDEX CONCURRENTLY a_x;
            REINDEX TABLE CONCURRENTLY a
            -- the end
            """)
        #expect(try bench.up() == ["1_a.sql", "2_b.sql"])
        #expect(try bench.history.last == "test|2_b.sql|applied|no-transaction")
        #expect(try bench.value("SELECT count(*) FROM log") == "1")
        #expect(try bench.value("SELECT sum(y) - 450 FROM a") == "3")
        #expect(try bench.value("SELECT statements_done FROM schema_migrations WHERE version = 2") == "7")
        #expect(
            bench.events.withLock { $0 }.contains(.statementStarted(file: "2_b.sql", number: 3, of: 7, line: 3)))
        #expect(try bench.up() == [])
    }

    @Test(
        "the file needs no transaction but does not say so: the message names line and directive, for a fix in one go")
    func directiveMissing() throws {
        for statement in ["CREATE INDEX CONCURRENTLY i ON a (x);", "VACUUM a;", "DO $$ BEGIN COMMIT; END $$;"] {
            let bench = try Bench(["1_a.sql": "CREATE TABLE a (x int);", "2_b.sql": "SELECT 1;\n\(statement)\n"])
            let error = try #require(try bench.failure())
            let problem = try #require(error.problems.first)
            #expect(problem.location?.line == 2 && problem.location?.text == statement)
            #expect(problem.hint?.contains("\"-- migrate: no-transaction\"") == true)
            try bench.write("2_b.sql", "\(Self.directive)SELECT 1;\n\(statement)\n")
            #expect(try bench.up() == ["2_b.sql"])
        }
    }

    @Test("after an error it goes on at the statement that failed, mended")
    func resumesAfterError() throws {
        let bench = try bench(
            "CREATE TABLE b (x int);\nINSERT INTO b VALUES (1);\nINSERT INTO c VALUES (1);\nCREATE TABLE d ();")
        let error = try #require(try bench.failure())
        #expect(error.description.hasPrefix("2_b.sql:4:13: ERROR 42P01"))
        #expect(try bench.history.last == "test|2_b.sql|running|no-transaction")
        let status = try bench.migrator().status()
        #expect(status.rows.last?.state == .running && status.rows.last?.history?.progress.count == 2)
        try bench.write(
            "2_b.sql", Self.directive + "CREATE TABLE b (x int);\nINSERT INTO b VALUES (1);\nINSERT INTO b VALUES (2);")
        #expect(try bench.up() == ["2_b.sql"])
        #expect(try bench.rows("SELECT x FROM b ORDER BY x") == ["1", "2"])
        #expect(try bench.migrator().status().isCurrent)
    }

    @Test("when the statements that are done were changed it is refused with the command that resolves it, both ways")
    func resolves() throws {
        let bench = try bench("CREATE TABLE b (x int);\nSELECT nope;")
        _ = try bench.failure()
        try bench.write("2_b.sql", Self.directive + "CREATE TABLE bb (x int);")
        let error = try #require(try bench.failure())
        #expect(error.exitCode == 3)
        #expect(error.description.contains("migrate resolve 2 --applied"))
        #expect(error.description.contains("migrate resolve 2 --not-applied"))
        let version = try #require(Version("2"))
        #expect(try bench.migrator().resolve(version, isApplied: false) == "2_b.sql")
        #expect(try bench.up() == ["2_b.sql"])
        #expect(try bench.value("SELECT to_regclass('bb') IS NOT NULL") == "t")

        try bench.write("3_c.sql", Self.directive + "SELECT nope;")
        _ = try bench.failure()
        #expect(try bench.migrator().resolve(#require(Version("3")), isApplied: true) == "3_c.sql")
        #expect(try bench.migrator().status().isCurrent)
        #expect(try bench.history.last == "test|3_c.sql|applied|resolved")
    }

    @Test("settings of the session hold for the rest of the file when it is resumed")
    func settingsAfterResuming() throws {
        let bench = try bench(
            """
            CREATE SCHEMA other; SET search_path = other; SELECT set_config('my.value', 'kept', false);
            SELECT nope;
            """)
        _ = try bench.failure()
        try bench.write(
            "2_b.sql",
            Self.directive
                + """
                CREATE SCHEMA other; SET search_path = other; SELECT set_config('my.value', 'kept', false);
                CREATE TABLE here AS SELECT current_setting('my.value') AS v;
                """)
        #expect(try bench.up() == ["2_b.sql"])
        #expect(try bench.value("SELECT v FROM other.here") == "kept")
    }

    @Test("an index that could not be built is named with the DROP to run; success never hides it")
    func invalidIndex() throws {
        let text = "SET search_path = public;\nCREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS a_y ON a (y);"
        let bench = try bench(text)
        for _ in 1...2 {
            let error = try #require(try bench.failure())
            #expect(error.description.contains("the index a_y is INVALID"), "\(error)")
            #expect(error.description.contains("DROP INDEX CONCURRENTLY a_y;"))
            #expect(try bench.migrator().status().rows.last?.state == .running)
        }
        _ = try bench.rows("DELETE FROM a WHERE x > 10")
        #expect(try bench.failure()?.exitCode == 3)
        let connection = try bench.database.connect()
        try connection.execute("DROP INDEX CONCURRENTLY a_y;")
        #expect(try bench.up() == ["2_b.sql"])
        #expect(try bench.value("SELECT bool_and(indisvalid) FROM pg_index WHERE indrelid = 'a'::regclass") == "t")
    }

    @Test(
        "a run that died after the server had done a statement, before it was recorded, does not do it twice",
        arguments: [
            ("CREATE INDEX CONCURRENTLY \"A_x\" ON ONLY public.a (x);", "CREATE INDEX \"A_x\" ON a (x)"),
            ("DROP INDEX CONCURRENTLY a_y;", "DROP INDEX a_y"),
        ])
    func diedBeforeRecording(statement: String, equivalent: String) throws {
        let bench = try bench(statement + " SELECT 1;")
        let (first, version) = (try #require(Version("1")), try #require(Version("2")))
        _ = try bench.migrator().up(to: first)
        _ = try bench.rows("CREATE INDEX a_y ON a (y)")
        // The history as a run leaves it that is killed there.
        let set = try MigrationSet(name: "test", directory: bench.path)
        let control = try bench.database.connect()
        let writer = HistoryWriter(table: HistoryTable(schema: "public"), set: "test", applicationVersion: nil)
        let file = try #require(set[version])
        try writer.insert(file, state: .running, mode: .noTransaction, control)
        var progress = StatementProgress()
        progress.inFlight = statement
        try writer.update(file, progress, control)
        try control.execute(equivalent)

        #expect(try bench.up() == ["2_b.sql"])
        #expect(try bench.migrator().status().isCurrent)
        #expect(try bench.value("SELECT statements_done FROM schema_migrations WHERE version = 2") == "2")
    }

    @Test("the search path and role that it sets hold while its progress is recorded elsewhere")
    func ownRole() throws {
        let role = "quiet_\(UInt32.random(in: 0 ... .max))"
        let bench = try bench(
            """
            CREATE ROLE \(role); CREATE SCHEMA mine AUTHORIZATION \(role);
            SET search_path = ''; SET ROLE \(role);
            CREATE TABLE mine.t (x int);
            CREATE INDEX CONCURRENTLY t_x ON mine.t (x);
            RESET ROLE; SET SESSION AUTHORIZATION \(role);
            CREATE TABLE mine.u (x int);
            CREATE INDEX CONCURRENTLY u_x ON mine.u (x);
            RESET SESSION AUTHORIZATION; DROP OWNED BY \(role); DROP ROLE \(role);
            """)
        #expect(try bench.up().count == 2)
    }

    @Test("COMMIT is refused here too, and a COPY that slips through fails clearly")
    func refused() throws {
        let bench = try bench("SELECT 1;\nCOMMIT;")
        #expect(try bench.failure()?.problems.first?.location?.line == 3)
    }
}
