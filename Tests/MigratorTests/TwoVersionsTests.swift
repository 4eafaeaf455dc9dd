import Foundation
import Postgres
import TestSupport
import Testing

@testable import Migrator

@Suite("Two versions of a program on one database")
struct TwoVersionsTests {
    private static let first = "CREATE TABLE log (x int);\n\(Gate.statement(1))"

    /// The folder of the newer program, and one of the older, which lacks its last file.
    private static func releases() throws -> (newer: Bench, older: TemporaryFolder) {
        let files = ["1_a.sql": first, "2_b.sql": "INSERT INTO log VALUES (2);"]
        let newer = try Bench(files)
        try newer.write("3_c.sql", "INSERT INTO log VALUES (3);")
        return (newer, try TemporaryFolder(files))
    }

    private func up(_ path: String, _ bench: Bench) throws -> Probe {
        let words = ["up", "--dir", path, "--set", "test", "--lock-timeout", "0"]
        return try Probe(words, database: bench.database.conninfo)
    }

    /// Waits until a second run is there: its session idles between two questions for the lock.
    private func waitForSecondRun(_ bench: Bench) throws {
        let session = try bench.database.connect()
        let deadline = ContinuousClock.now + .seconds(60)
        while try session.execute(
            "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_locks l%LEFT JOIN%' AND state = 'idle'"
        ).last?.text(0, 0) != "t" {
            try #require(ContinuousClock.now < deadline, "the second run does not wait")
            usleep(5000)
        }
    }

    @Test("an older program that waited for a newer one finds the database ahead, exits 3 and changes nothing")
    func olderWaits() throws {
        let (newer, older) = try Self.releases()
        let gate = try Gate(1, newer)
        let first = try up(newer.path, newer)
        _ = try gate.waitForArrival()
        let second = try up(older.path, newer)
        try waitForSecondRun(newer)
        try gate.open()
        #expect(try first.wait().status == 0)
        let refused = try second.wait()
        #expect(refused.status == 3, "\(refused)")
        #expect(refused.errors.contains("3_c.sql") && refused.errors.contains("the database is ahead"), "\(refused)")
        #expect(try newer.rows("SELECT x FROM log ORDER BY x") == ["2", "3"])
        #expect(try newer.history.count == 3)

        for words in [["up"], ["status", "--check"], ["up", "--dry-run"]] {
            let later = try Probe(words + ["--dir", older.path, "--set", "test"], database: newer.database.conninfo)
                .wait()
            #expect(later.status == 3, "\(words): \(later)")
        }
    }

    @Test("a newer program that waited for an older one applies only what that one did not have")
    func newerWaits() throws {
        let (newer, older) = try Self.releases()
        let gate = try Gate(1, newer)
        let first = try up(older.path, newer)
        _ = try gate.waitForArrival()
        let second = try up(newer.path, newer)
        try waitForSecondRun(newer)
        try gate.open()
        #expect(try first.wait().status == 0)
        let result = try second.wait()
        #expect(result.status == 0, "\(result)")
        #expect(!result.output.contains("2_b.sql") && result.output.contains("3_c.sql"), "\(result)")
        #expect(try newer.rows("SELECT x FROM log ORDER BY x") == ["2", "3"])
    }

    @Test("a server's clock that was set back does not change the order, nor what is pending")
    func clockSetBack() throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE log (x int);", "2_b.sql": "INSERT INTO log VALUES (2);"])
        try bench.up()
        // As it is after files were applied with a clock that was a day ahead, the later file by an hour less.
        _ = try bench.rows(
            "UPDATE schema_migrations SET applied_at = applied_at + interval '1 day' - version * interval '1 hour'")
        try bench.write("3_c.sql", "INSERT INTO log VALUES (3);")
        #expect(try bench.up() == ["3_c.sql"])
        #expect(try bench.up() == [])
        let rows = try bench.migrator().status().rows
        #expect(rows.map(\.name) == ["1_a.sql", "2_b.sql", "3_c.sql"] && rows.allSatisfy { $0.state == .applied })
        let times = rows.compactMap(\.history?.appliedAt)
        #expect(times == times.sorted(by: >) && times.count == 3)
        // The history is told by the clock, whatever it said.
        let history = try bench.run("history").output
        let places = ["3_c.sql", "2_b.sql", "1_a.sql"].compactMap { history.range(of: $0)?.lowerBound }
        #expect(places.count == 3 && places == places.sorted(), "\(history)")
        #expect(rows.allSatisfy { ($0.history?.durationMilliseconds ?? -1) >= 0 })
    }
}
