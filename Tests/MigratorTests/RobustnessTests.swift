import Foundation
import Postgres
import TestSupport
import Testing

@testable import Migrator

@Suite("A migrator in bad surroundings")
struct RobustnessTests {
    @Test("a server set read-only is named as such, and status still works")
    func readOnly() throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE a ();"])
        _ = try bench.rows("ALTER DATABASE \(bench.database.name) SET default_transaction_read_only = on")
        let error = try #require(try bench.failure())
        #expect(error.exitCode == 4 && error.problems.first?.sqlState == "25006")
        #expect(error.description.contains("read-only") && error.description.contains("primary"))
        #expect(try bench.migrator().status().pendingCount == 1)
    }

    @Test("a role that may not create tables in the schema is told what it needs")
    func noRights() throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE a ();"])
        let role = "poor_\(UInt32.random(in: 0 ... .max))"
        _ = try bench.rows("CREATE ROLE \(role) LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC;")
        let migrator = Migrator(
            set: try MigrationSet(name: "test", directory: bench.path),
            database: bench.database.conninfo + " user=\(role)")
        let error = #expect(throws: MigrationError.self) { try migrator.up() }
        #expect(error?.exitCode == 4 && error?.problems.first?.sqlState == "42501")
        #expect(error?.description.contains("GRANT CREATE, USAGE ON SCHEMA") == true)
        _ = try bench.rows("DROP ROLE \(role)")
    }

    @Test("a database that does not exist is told apart from a file's fault")
    func noDatabase() throws {
        let bench = try Bench(["1_a.sql": "SELECT 1;"])
        let migrator = Migrator(
            set: try MigrationSet(name: "test", directory: bench.path),
            database: bench.database.conninfo + " dbname=nowhere")
        #expect(#expect(throws: MigrationError.self) { try migrator.status() }?.exitCode == 4)
    }

    @Test("a history made by an older program gets its missing columns, its rows kept")
    func olderColumns() throws {
        let bench = try Bench(["1_a.sql": "SELECT 1;", "2_b.sql": "SELECT 2;"])
        let set = try MigrationSet(name: "test", directory: bench.path)
        _ = try bench.rows(
            """
            CREATE TABLE schema_migrations (
                set_name text, version numeric, name text, checksum text, PRIMARY KEY (set_name, version));
            INSERT INTO schema_migrations VALUES ('test', 1, '1_a.sql', '\(set.files[0].checksum)');
            """)
        #expect(try bench.migrator().status().rows.map(\.state) == [.applied, .pending])
        #expect(try bench.up() == ["2_b.sql"])
        #expect(try bench.history.count == 2)
        #expect(try bench.migrator().status().isCurrent)
    }

    @Test(
        "a history that somebody changed by hand is told so, and never trips the program",
        arguments: [
            ("version = 1.5", 4), ("version = 'NaN'", 4), ("duration_ms = NULL", 4), ("state = 'lost'", 4),
            ("checksum = ''", 3), ("state = 'running', statements_done = -1", 3),
            ("state = 'running', statements_done = 2147483647", 3), ("state = 'running', statements_hash = 'x'", 3),
            ("mode = 'magic', applied_at = 'infinity'", 0), ("applied_at = '-infinity', duration_ms = -1", 0),
            ("name = E'a\\e[31m\\n.sql', applied_by = E'\\u009bx'", 0),
        ])
    func changedByHand(change: String, exitCode: Int32) throws {
        let bench = try Bench(["1_a.sql": "-- migrate: no-transaction\nSELECT 1;"])
        try bench.up()
        _ = try bench.rows(
            """
            ALTER TABLE schema_migrations DROP CONSTRAINT schema_migrations_state_check, ALTER duration_ms DROP NOT NULL;
            UPDATE schema_migrations SET \(change);
            """)
        for command in [
            ["up"], ["status", "--check"], ["history"], ["repair", "1"], ["resolve", "1", "--not-applied"],
        ] {
            let result = try Probe(command + ["--dir", bench.path, "--set", "test"], database: bench.database.conninfo)
                .wait()
            #expect([0, 3, 4].contains(result.status), "\(command): \(result)")
            if command.count < 3, command[0] != "history", command[0] != "repair" {
                #expect(result.status == exitCode, "\(command): \(result)")
            }
            #expect(result.status != 4 || result.errors.contains("HINT: The table was changed by hand."), "\(result)")
            #expect(!(result.output + result.errors).unicodeScalars.contains { $0.value == 0x1B || $0.value == 0x9B })
        }
    }

    @Test("a table of another program under our name is not touched")
    func foreignTable() throws {
        let bench = try Bench(["1_a.sql": "SELECT 1;"])
        _ = try bench.rows(
            "CREATE TABLE schema_migrations (version varchar PRIMARY KEY); INSERT INTO schema_migrations VALUES ('1');")
        let error = try #require(try bench.failure())
        #expect(error.exitCode == 4 && error.description.contains("belongs to another program"))
        #expect(error.description.contains("--schema"))
        _ = try bench.rows("CREATE SCHEMA ours")
        #expect(try bench.up { $0.historySchema = "ours" } == ["1_a.sql"])
        #expect(try bench.value("SELECT count(*) FROM public.schema_migrations") == "1")
    }

    @Test("every column of the history is commented, and the table is")
    func comments() throws {
        let bench = try Bench(["1_a.sql": "SELECT 1;"])
        try bench.up()
        let missing = try bench.rows(
            """
            SELECT attname FROM pg_attribute WHERE attrelid = 'schema_migrations'::regclass AND attnum > 0
                AND col_description(attrelid, attnum) IS NULL
            """)
        #expect(missing == [])
        #expect(
            try bench.value("SELECT obj_description('schema_migrations'::regclass)").contains("one row per migration"))
    }

    @Test("a server that stops in the middle of a file exits 4; after its start the next run applies the file")
    func serverRestart() throws {
        let cluster = try TestCluster.start(durable: false)
        let bench = try Bench(["1_a.sql": "CREATE TABLE a ();\n\(Gate.statement(1))"], on: cluster)
        do {
            let gate = try Gate(1, bench)
            let probe = try bench.start("up", "--lock-timeout", "0")
            _ = try gate.waitForArrival()
            cluster.cluster.stop()
            let result = try probe.wait()
            #expect(result.status == 4, "\(result)")
        }
        try cluster.cluster.start()
        #expect(try bench.run("up").status == 0)
    }

    @Test("10,000 files are compared with their history in no time")
    func manyFiles() throws {
        let files = (1...10_000).map { number in
            (name: String(100_000 + number) + "_file.sql", contents: "INSERT INTO t VALUES (\(number));\n")
        }
        let database = try TestDatabase.make()
        let start = ContinuousClock.now
        let set = try MigrationSet(name: "test", embedded: files)
        let migrator = Migrator(set: set, database: database.conninfo)
        let last = try #require(set.files.last?.version)
        let read = ContinuousClock.now
        #expect(try migrator.baseline(last).count == 10_000)
        let applied = ContinuousClock.now
        #expect(try migrator.up().applied.isEmpty)
        let compared = ContinuousClock.now
        print("10,000 files: read in \(read - start), baseline in \(applied - read), compared in \(compared - applied)")
        // One second is the aim for a release build on an idle machine; this one is neither.
        #expect(compared - applied < .seconds(30))
        #expect(try migrator.status().isCurrent)
    }

    @Test("a file of many megabytes runs, and an error at its end is placed")
    func largeFile() throws {
        let row = "INSERT INTO t VALUES ('\(String(repeating: "x", count: 1000))');\n"
        let count = 2000
        let bench = try Bench([
            "1_a.sql": "CREATE TABLE t (a text);\n" + String(repeating: row, count: count) + "SELECT nope;"
        ])
        let error = try #require(try bench.failure())
        #expect(error.problems.first?.location?.line == count + 2)
        try bench.write("1_a.sql", "CREATE TABLE t (a text);\n" + String(repeating: row, count: count))
        #expect(try bench.up().count == 1)
        #expect(try bench.value("SELECT count(*) FROM t") == "\(count)")
    }
}
