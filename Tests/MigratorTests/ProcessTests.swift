import Foundation
import Postgres
import TestSupport
import Testing

@testable import Migrator

@Suite("Processes that migrate")
struct ProcessTests {
    /// A transactional file, one without a transaction, and another; after each statement a gate.
    private static func mixedSet() throws -> Bench {
        try Bench([
            "1_first.sql": """
            CREATE TABLE log (entry text NOT NULL);
            \(Gate.statement(1))
            INSERT INTO log VALUES ('one');
            \(Gate.statement(2))
            CREATE INDEX log_entry ON log (entry);
            \(Gate.statement(3))
            """,
            "2_second.sql": """
            -- migrate: no-transaction
            CREATE TABLE numbers (x int);
            \(Gate.statement(4))
            INSERT INTO log VALUES ('two');
            \(Gate.statement(5))
            CREATE INDEX CONCURRENTLY numbers_x ON numbers (x);
            \(Gate.statement(6))
            DO $$ BEGIN INSERT INTO log VALUES ('three'); END $$;
            VACUUM numbers;
            \(Gate.statement(7))
            CREATE UNIQUE INDEX CONCURRENTLY numbers_unique ON numbers (x);
            DROP INDEX CONCURRENTLY numbers_x;
            \(Gate.statement(8))
            """,
            "3_third.sql": "INSERT INTO log VALUES ('four');\n\(Gate.statement(9))",
        ])
    }

    private func checkEnd(of bench: Bench) throws {
        #expect(
            try bench.rows("SELECT entry, count(*) FROM log GROUP BY 1 ORDER BY 1") == [
                "four|1", "one|1", "three|1", "two|1",
            ])
        #expect(
            try bench.rows(
                "SELECT indexrelid::regclass, indisvalid FROM pg_index WHERE indrelid::regclass::text IN ('log', 'numbers') ORDER BY 1::text"
            )
            .sorted() == ["log_entry|t", "numbers_unique|t"])
        #expect(
            try bench.history == [
                "test|1_first.sql|applied|transaction", "test|2_second.sql|applied|no-transaction",
                "test|3_third.sql|applied|transaction",
            ])
    }

    @Test("killed after any statement, a second run comes to the same end, each file applied once", arguments: 1...9)
    func killed(gate number: Int) throws {
        let bench = try Self.mixedSet()
        let gate = try Gate(number, bench)
        let first = try bench.start("up", "--lock-timeout", "0")
        _ = try gate.waitForArrival()
        first.signal(SIGKILL)
        #expect(try first.wait().status == -SIGKILL)
        // What the server still does for the dead run is waited for.
        let second = try bench.start("up", "--lock-timeout", "0")
        try gate.open()
        let result = try second.wait()
        #expect(result.status == 0, "\(result.errors)")
        try checkEnd(of: bench)
        #expect(try bench.run("up").output == "up to date\n")
    }

    /// A file whose index is built slowly: its expression waits at gate 1.
    private static func slowIndex() throws -> Bench {
        try Bench([
            "1_a.sql": """
            CREATE TABLE a AS SELECT 1 AS x;
            CREATE FUNCTION slow(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
            BEGIN PERFORM pg_advisory_lock_shared(4242, 1); PERFORM pg_advisory_unlock_shared(4242, 1); RETURN $1; END $$;
            """,
            "2_b.sql": """
            -- migrate: no-transaction
            CREATE TABLE b (x int);
            CREATE INDEX CONCURRENTLY a_slow ON a (slow(x));
            CREATE INDEX CONCURRENTLY a_x ON a (x);
            """,
        ])
    }

    @Test("killed in the middle of a CONCURRENTLY build that the server then finishes: the next run waits and goes on")
    func killedInBuild() throws {
        let bench = try Self.slowIndex()
        let gate = try Gate(1, bench)
        let first = try bench.start("up")
        _ = try gate.waitForArrival()
        first.signal(SIGKILL)
        try first.wait()
        let impatient = try bench.run("up", "--lock-wait", "1s")
        #expect(impatient.status == 5)
        #expect(impatient.errors.contains("a session that an earlier run left behind, still at work (pid "))
        let second = try bench.start("up")
        try gate.open()
        let result = try second.wait()
        #expect(result.status == 0, "\(result.errors)")
        #expect(try bench.value("SELECT count(*) FROM pg_index WHERE indrelid = 'a'::regclass AND indisvalid") == "2")
    }

    @Test("killed in the middle of a CONCURRENTLY build that ends INVALID: never success until the index is dropped")
    func killedInBuildInvalid() throws {
        let bench = try Self.slowIndex()
        let gate = try Gate(1, bench)
        let first = try bench.start("up")
        let worker = try gate.waitForArrival()
        first.signal(SIGKILL)
        try first.wait()
        try gate.execute("SELECT pg_terminate_backend(\(worker), 60000)")
        try gate.open()
        for _ in 1...2 {
            let result = try bench.run("up")
            #expect(result.status == 3)
            #expect(result.errors.contains("2_b.sql:3:1: error: the index a_slow is INVALID"))
            #expect(result.errors.contains("DROP INDEX CONCURRENTLY a_slow;"))
        }
        try gate.execute("DROP INDEX CONCURRENTLY a_slow;")
        #expect(try bench.run("up").status == 0)
        #expect(try bench.value("SELECT count(*) FROM pg_index WHERE indrelid = 'a'::regclass AND indisvalid") == "2")
    }

    @Test(
        "killed in the middle of a build whose index the server names: never success until what is left is dropped",
        arguments: [
            ("CREATE INDEX CONCURRENTLY ON a (slow(x));", "public.a_slow_idx"),
            ("REINDEX INDEX CONCURRENTLY a_old;", "public.a_old_ccnew"),
            ("REINDEX (VERBOSE) TABLE CONCURRENTLY a;", "public.a_old_ccnew"),
            ("REINDEX SCHEMA CONCURRENTLY public;", "public.a_old_ccnew"),
        ])
    func killedInUnnamedBuild(statement: String, left: String) throws {
        let bench = try Self.slowIndex()
        _ = try bench.migrator().up(to: Version("1"))
        try bench.write("2_b.sql", "-- migrate: no-transaction\n\n\(statement)")
        let gate = try Gate(1, bench)
        // Whoever closed the gate passes it.
        if statement.hasPrefix("REINDEX") { try gate.execute("CREATE INDEX a_old ON a (slow(x))") }
        let first = try bench.start("up")
        let worker = try gate.waitForArrival()
        first.signal(SIGKILL)
        try first.wait()
        try gate.execute("SELECT pg_terminate_backend(\(worker), 60000)")
        try gate.open()
        for _ in 1...2 {
            let result = try bench.run("up")
            #expect(result.status == 3, "\(result)")
            #expect(result.errors.contains("2_b.sql:3:1: error: the index \(left) is INVALID"), "\(result)")
            #expect(result.errors.contains("DROP INDEX CONCURRENTLY \(left);"))
        }
        try gate.execute("DROP INDEX CONCURRENTLY \(left);")
        #expect(try bench.run("up").status == 0)
        #expect(try bench.value("SELECT count(*) FROM pg_index WHERE NOT indisvalid") == "0")
    }

    @Test("8 processes on an empty database: one applies, the others find nothing to do")
    func eightAtOnce() throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE a (x int);", "2_b.sql": "CREATE TABLE b (x int);"])
        let probes = try (1...8).map { _ in try bench.start("up") }
        let results = try probes.map { try $0.wait() }
        #expect(results.map(\.status) == Array(repeating: 0, count: 8), "\(results)")
        #expect(results.count { $0.output.contains("applied  1_a.sql") } == 1)
        #expect(results.count { $0.output == "up to date\n" } == 7)
        #expect(try bench.history.count == 2)
    }

    @Test("2 processes at once on a set with a CONCURRENTLY file both end well")
    func twoConcurrently() throws {
        let bench = try Bench([
            "1_a.sql": "CREATE TABLE a AS SELECT generate_series(1, 10000) AS x;",
            "2_b.sql":
                "-- migrate: no-transaction\nCREATE INDEX CONCURRENTLY a_x ON a (x);\nCREATE INDEX CONCURRENTLY a_y ON a (x);",
            "3_c.sql": "DROP TABLE a;",
        ])
        let probes = try (1...2).map { _ in try bench.start("up") }
        #expect(try probes.map { try $0.wait().status } == [0, 0])
        #expect(try bench.history.count == 3)
    }

    @Test("a run that holds the lock is named to one that waits, and not waited for with --lock-wait 0")
    func lockWait() throws {
        let bench = try Bench(["1_a.sql": Gate.statement(1)])
        let gate = try Gate(1, bench)
        let first = try bench.start("up")
        _ = try gate.waitForArrival()
        let holder = try gate.lockHolder()
        let impatient = try bench.run("up", "--lock-wait", "0", "--json")
        #expect(impatient.status == 5)
        #expect(impatient.errors.contains("another run (pid \(holder), probe-migrate, since 2"))
        #expect(impatient.output.contains("\"exitCode\":5"))
        let patient = try bench.start("up", "--lock-wait", "1min")
        try gate.open()
        #expect(try first.wait().status == 0)
        let result = try patient.wait()
        #expect(result.status == 0 && result.output == "up to date\n")
    }

    @Test("SIGTERM and SIGINT roll back what is under way and give the lock back", arguments: [SIGTERM, SIGINT])
    func signals(signal: Int32) throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE a ();", "2_b.sql": "CREATE TABLE b ();\n\(Gate.statement(1))"])
        let gate = try Gate(1, bench)
        let probe = try bench.start("up", "--lock-timeout", "0")
        _ = try gate.waitForArrival()
        probe.signal(signal)
        let result = try probe.wait()
        #expect(result.status == 128 + signal)
        #expect(result.errors.contains("stopped by SIG"))
        #expect(try bench.history.count == 1)
        #expect(try bench.value("SELECT to_regclass('b')") == "")
        try gate.open()
        #expect(try bench.run("up", "--lock-wait", "0").status == 0)
    }

    @Test("a signal in the middle of a CONCURRENTLY build exits 130 and names the index that is left INVALID")
    func signalInBuild() throws {
        let bench = try Self.slowIndex()
        let gate = try Gate(1, bench)
        let probe = try bench.start("up")
        _ = try gate.waitForArrival()
        probe.signal(SIGINT)
        let result = try probe.wait()
        #expect(result.status == 130, "\(result)")
        #expect(result.errors.contains("stopped by SIGINT; the statement under way was broken off"), "\(result)")
        #expect(!result.errors.contains("rolled back") && result.errors.contains("DROP INDEX CONCURRENTLY a_slow;"))
        try gate.open()
        try gate.execute("DROP INDEX CONCURRENTLY a_slow;")
        #expect(try bench.run("up").status == 0)
    }

    @Test("a signal ends the waiting for the lock too")
    func signalWhileWaiting() throws {
        let bench = try Bench(["1_a.sql": Gate.statement(1)])
        let gate = try Gate(1, bench)
        let first = try bench.start("up")
        _ = try gate.waitForArrival()
        let second = try bench.start("up")
        try gate.waitForSessions(3)
        second.signal(SIGINT)
        #expect(try second.wait().status == 130)
        try gate.open()
        #expect(try first.wait().status == 0)
    }

    @Test("a second signal ends the process at once, even when the server does not answer")
    func secondSignal() throws {
        let bench = try Bench(["1_a.sql": Gate.statement(1)])
        let gate = try Gate(1, bench)
        let probe = try bench.start("up", "--lock-timeout", "0")
        let worker = try gate.waitForArrival()
        #expect(kill(worker, SIGSTOP) == 0)
        defer { kill(worker, SIGCONT) }
        probe.signal(SIGINT)
        // Pending signals of one kind are one; the other kind is a second one for sure.
        probe.signal(SIGTERM)
        let status = try probe.wait().status
        #expect(status == 130 || status == 143)
    }

    @Test("when the session with the lock is lost, the file under way is finished and no other begun")
    func lockLost() throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE a ();\n\(Gate.statement(1))", "2_b.sql": "CREATE TABLE b ();"])
        let gate = try Gate(1, bench)
        let probe = try bench.start("up", "--lock-timeout", "0")
        _ = try gate.waitForArrival()
        try gate.execute("SELECT pg_terminate_backend(\(try gate.lockHolder()), 60000)")
        // A newer run may not begin beside the file.
        let newer = try bench.run("up", "--lock-wait", "1s")
        #expect(newer.status == 5 && newer.errors.contains("left behind"), "\(newer)")
        try gate.open()
        let result = try probe.wait()
        #expect(result.status == 4 && result.errors.contains("the session that held the lock was lost"), "\(result)")
        #expect(try bench.history == ["test|1_a.sql|applied|transaction"])
        #expect(try bench.run("up").output.contains("applied  2_b.sql"))
    }

    @Test("when the session that runs the file is ended, the exit code is 4, nothing is left, and it can be run again")
    func workerLost() throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE a ();\n\(Gate.statement(1))"])
        let gate = try Gate(1, bench)
        let probe = try bench.start("up", "--lock-timeout", "0")
        try gate.execute("SELECT pg_terminate_backend(\(try gate.waitForArrival()), 60000)")
        let result = try probe.wait()
        #expect(result.status == 4, "\(result)")
        #expect(try bench.history == [])
        try gate.open()
        #expect(try bench.run("up").status == 0)
    }

    @Test("a table that stays locked is tried three times, and then the message says so")
    func lockTimeout() throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE a ();", "2_b.sql": "ALTER TABLE a ADD COLUMN x int;"])
        _ = try bench.migrator().up(to: Version("1"))
        let blocker = try bench.database.connect()
        try blocker.execute("BEGIN; LOCK TABLE a;")
        let error = try #require(try bench.failure { $0.lockTimeout = .milliseconds(50) })
        #expect(error.exitCode == 1 && error.problems.first?.sqlState == "55P03")
        let retries = bench.events.withLock { $0 }.filter { if case .retrying = $0 { true } else { false } }
        #expect(retries.count == 2)
        try blocker.execute("COMMIT")
        #expect(try bench.up() == ["2_b.sql"])
    }
}

extension Gate {
    /// Waits until so many sessions besides this one are in the database.
    func waitForSessions(_ count: Int) throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            let sql =
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            guard let result = try execute(sql), try result.int8(0, 0) < count else { return }
            try #require(ContinuousClock.now < deadline, "there were never \(count) sessions")
            usleep(5000)
        }
    }
}
