import Foundation
import Postgres
import TestSupport
import Testing

@testable import Migrator

@Suite("The command line")
struct CommandTests {
    /// One object with its keys in order of appearance is not needed here; only what it holds.
    private func json(_ text: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    private func probe(_ arguments: String...) throws -> Probe.Result {
        try Probe(arguments, database: "host=/nowhere").wait()
    }

    // MARK: - Without a database

    @Test("without a command it shows help and exits 2; help and --help exit 0")
    func help() throws {
        #expect(try probe().status == 2)
        for arguments in [["help"], ["--help"], ["-h"], ["help", "up"], ["up", "--help"], ["status", "-h"]] {
            let result = try Probe(arguments, database: "").wait()
            #expect(result.status == 0 && result.output.contains("Usage: migrate-probe") && result.errors.isEmpty)
            #expect(result.output.contains("Example: ") && result.output.contains("Exit codes: 0 "))
        }
    }

    @Test(
        "wrong usage exits 2 and says what to type",
        arguments: [
            (["upp"], "did you mean up?"), (["status", "--chek"], "did you mean --check?"),
            (["repair"], "<version> is missing"),
            (["repair", "latest"], "\"latest\" is no version"), (["up", "extra"], "one argument too many"),
            (["up", "--dir", "/tmp"], "--dir needs --set"), (["up", "--set", "other"], "needs --dir"),
            (["up", "--verify"], "goes with --dry-run"), (["up", "--lock-wait", "soon"], "takes a time"),
            (["up", "--lock-wait", "99999999h"], "takes a time"), (["up", "--to"], "needs a value"),
            (["resolve", "1"], "either --applied or --not-applied"),
            (["resolve", "1", "--applied", "--not-applied"], "either --applied or --not-applied"),
            (
                ["status", "--dir", "/nowhere", "--set", "x"],
                "cannot read the folder /nowhere: No such file or directory"
            ),
            (["new", "!!"], "gives no file name"),
        ])
    func usage(arguments: [String], message: String) throws {
        let result = try Probe(arguments, database: "host=/nowhere").wait()
        #expect(result.status == 2 && result.output.isEmpty)
        #expect(result.errors.contains(message) && result.errors.contains("HINT: "), "\(result.errors)")
    }

    @Test("a server that is not there exits 4, and no password is shown")
    func unreachable() throws {
        let result = try Probe(["status"], database: "host=/nowhere password=geheim").wait()
        #expect(result.status == 4)
        #expect(result.errors.contains("HINT: ") && !result.errors.contains("geheim"))
    }

    @Test("validate needs no database: 0 for good files, 1 with every problem for others")
    func validate() throws {
        let folder = try TemporaryFolder(["0001_a.sql": "SELECT 1;", "notes.md": ""])
        let good = try probe("validate", "--dir", folder.path, "-v")
        #expect(good.status == 0 && good.output == "1 migration, no problems\n" && good.errors == "ignored: notes.md\n")
        try folder.write("0002_b.sql", "SELECT 1;\nCOMMIT;\n\\q")
        let bad = try probe("validate", "--dir", folder.path, "--json")
        #expect(bad.status == 1)
        let problems = try #require(try json(bad.output)["problems"] as? [[String: Any]])
        #expect(problems.map { $0["line"] as? Int } == [2, 3])
        #expect(bad.errors.contains("0002_b.sql:2:1: error: COMMIT in a migration"))
        #expect(bad.errors.contains("\n    COMMIT;\n    ^\n"))
    }

    @Test("new takes the next version as wide as the last, and never overwrites")
    func new() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/migrations"
        #expect(try probe("new", "First tables!", "--dir", path).output == "\(path)/0001_first_tables.sql\n")
        #expect(try probe("new", "add_scores", "--dir", path).output == "\(path)/0002_add_scores.sql\n")
        #expect(try probe("validate", "--dir", path).status == 0)
        try folder.write("migrations/9999_last.sql", "")
        let full = try probe("new", "more", "--dir", path)
        #expect(full.status == 2 && full.errors.contains("would be listed before"))
        let stamps = try TemporaryFolder(["20250101120000_a.sql": ""])
        let stamped = try NewMigration.create("b", in: stamps.path, now: 1_764_417_600_000_000)
        #expect(stamped == "20251129120000_b.sql")
        #expect(try NewMigration.create("c", in: stamps.path, now: 0) == "20251129120001_c.sql")
    }

    // MARK: - With one

    @Test("a session of up, status, a failing file, its mending")
    func session() throws {
        let bench = try Bench(["0001_a.sql": "CREATE TABLE a (x int);", "0002_b.sql": "SELECT nope;"])
        let pending = try bench.run("status", "--check")
        #expect(pending.status == 6 && pending.errors == "2 pending: migrate-probe up --dir \(bench.path) --set test\n")
        let failing = try bench.run("up")
        #expect(failing.status == 1)
        #expect(failing.output.hasPrefix("applied  0001_a.sql  ") && failing.output.hasSuffix(" ms\n"))
        #expect(
            failing.errors.hasPrefix(
                "0002_b.sql:1:8: ERROR 42703: column \"nope\" does not exist\n    SELECT nope;\n           ^\n"))
        try bench.write("0002_b.sql", "SELECT 1;")
        #expect(try bench.run("up").output.hasPrefix("applied  0002_b.sql  "))
        #expect(try bench.run("up").output == "up to date\n")
        let current = try bench.run("status", "--check")
        #expect(current.status == 0 && current.errors == "up to date\n")
        let lines = current.output.split(separator: "\n")
        try #require(lines.count == 3)
        #expect(lines[0].hasPrefix("VERSION  NAME        STATE    APPLIED AT"))
        #expect(lines[1].hasPrefix("0001     0001_a.sql  applied  2"))
        #expect(try bench.run("history").output.split(separator: "\n").count == 3)
    }

    @Test("--json prints one object with stable keys for each command")
    func jsonObjects() throws {
        let bench = try Bench(["0001_a.sql": "CREATE TABLE a (x int);"])
        let dry = try json(bench.run("up", "--dry-run", "--json").output)
        #expect((dry["pending"] as? [[String: Any]])?.first?["mode"] as? String == "transaction")
        let status = try json(bench.run("status", "--json").output)
        #expect(status["state"] as? String == "pending" && status["pending"] as? Int == 1)
        let up = try json(bench.run("up", "--json").output)
        #expect((up["applied"] as? [[String: Any]])?.first?["name"] as? String == "0001_a.sql")
        let history = try json(bench.run("history", "--json").output)
        #expect((history["history"] as? [[String: Any]])?.first?["applicationVersion"] as? String == "0.0.1")
        try bench.write("0001_a.sql", "CREATE TABLE b (x int);")
        let changed = try bench.run("status", "--check", "--json")
        #expect(changed.status == 3)
        let object = try json(changed.output)
        #expect(object["state"] as? String == "conflict" && object["ok"] as? Bool == false)
        let refused = try json(bench.run("up", "--json").output)
        #expect(refused["exitCode"] as? Int == 3)
        let repair = try json(bench.run("repair", "1", "--json").output)
        #expect(repair["before"] as? String != repair["after"] as? String)
        #expect(try json(bench.run("status", "--json").output)["state"] as? String == "current")
        #expect(
            try json(bench.run("resolve", "0001_a.sql", "--not-applied", "--json").output)["applied"] as? Bool == false)
        #expect(try json(bench.run("baseline", "1", "--json").output)["baseline"] as? [String] == ["0001_a.sql"])
        #expect(try json(bench.run("validate", "--json").output)["files"] as? Int == 1)
        #expect(
            (try json(Probe(["dump", "--json"], database: bench.database.conninfo).wait().output)["dump"] as? String)?
                .contains("schema_migrations") == true)
    }

    @Test("hints repeat the database that the command line names, without a password")
    func databaseHints() throws {
        let bench = try Bench(["1_a.sql": "SELECT 1;"])
        func hint(_ database: String) throws -> String {
            try Probe(["status", "--dir", bench.path, "--set", "test", "--database", database], database: "").wait()
                .errors
        }
        let plain = bench.database.conninfo
        let shown = try hint(plain)
        #expect(shown.contains("migrate-probe up --dir \(bench.path) --set test --database '"), "\(shown)")
        #expect(shown.filter { $0 != "'" && $0 != "\\" }.contains(plain.filter { $0 != "'" }), "\(shown)")
        let secret = try hint(plain + " password=geheim")
        #expect(!secret.contains("geheim") && secret.contains("--database '…'"), "\(secret)")
    }

    @Test(
        "a connection string that cannot be read is wrong usage, for every command", arguments: ["history", "dump"])
    func unreadableDatabase(command: String) throws {
        let result = try probe(command, "--database", "nonsense password=geheim")
        #expect(result.status == 2 && result.errors.contains("connection string"), "\(result)")
        #expect(!result.errors.contains("geheim"))
    }

    @Test("what PGOPTIONS sets holds beside our own settings, for the history and for the files")
    func environmentOptions() throws {
        let bench = try Bench([
            "1_a.sql": "CREATE TABLE a (); SELECT 1 / (current_setting('lock_timeout') = '5s')::int;"
        ])
        _ = try bench.rows("CREATE SCHEMA app")
        let result = try Probe(
            ["up", "--dir", bench.path, "--set", "test"], database: bench.database.conninfo,
            environment: ["PGOPTIONS": "-c search_path=app"]
        ).wait()
        #expect(result.status == 0, "\(result)")
        #expect(try bench.value("SELECT to_regclass('app.a') IS NOT NULL") == "t")
        #expect(try bench.value("SELECT count(*) FROM app.schema_migrations") == "1")
    }

    @Test("output that cannot be written is told by the exit code, and ends nothing that is under way")
    func unwritableOutput() throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE a ();", "2_b.sql": "CREATE TABLE b ();"])
        func run(_ command: String, _ redirection: String) throws -> Int32 {
            let process = Process()
            process.executableURL = URL(filePath: "/bin/sh")
            // Ignored, SIGPIPE leaves an error to the one who writes.
            process.arguments = [
                "-c", "trap '' PIPE; exec \"$0\" \(command) --dir \"$1\" --set test --database \"$2\" \(redirection)",
                try Probe.executable().path, bench.path, bench.database.conninfo,
            ]
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
        }
        #expect(try run("up --to 1", ">/dev/full 2>&1") == 2)
        #expect(try bench.history.count == 1)
        // A connection that got the number of a closed stream would get the output, too.
        #expect(try run("up", "<&- >&- 2>&-") == 2)
        #expect(try bench.history.count == 2)
        for redirection in [">&-", ">/dev/full", ">&- 2>&-"] {
            #expect(try run("status --json", redirection) == 2, "\(redirection)")
        }
        #expect(try run("status", "2>/dev/full") == 0)
        #expect(try run("repair 7", ">&- 2>&-") == 2)
    }

    @Test("help knows its commands, and nothing else")
    func helpOfUnknown() throws {
        let result = try probe("help", "statsu")
        #expect(result.status == 2, "\(result)")
        #expect(result.errors.contains("there is no command statsu; did you mean status?"), "\(result)")
        let odd = try probe("a\u{1B}[31m\u{202E}b\u{9B}c\u{2028}")
        #expect(odd.errors.contains("there is no command a\\u{1B}[31m\\u{202E}b\\u{9B}c\\u{2028}\n"), "\(odd)")
        #expect(try probe("hlep").errors.contains("did you mean help?"))
    }

    @Test("hints name the whole command, the set's options included")
    func hints() throws {
        let bench = try Bench(["1_a.sql": "SELECT 1;", "3_c.sql": "SELECT 3;"])
        try bench.up()
        try bench.write("2_b.sql", "SELECT 2;")
        let errors = try bench.run("up").errors
        #expect(errors.contains("migrate-probe up --allow-out-of-order 2 --dir \(bench.path) --set test"))
        #expect(try bench.run("up", "--allow-out-of-order", "2").status == 0)
    }

    @Test("baseline takes files as applied without running them, once; up goes on behind them")
    func baseline() throws {
        let bench = try Bench([
            "1_a.sql": "CREATE TABLE a ();", "2_b.sql": "CREATE TABLE b ();", "3_c.sql": "CREATE TABLE c ();",
        ])
        #expect(try bench.run("baseline", "2").output == "taken as applied: 1_a.sql\ntaken as applied: 2_b.sql\n")
        #expect(try bench.run("baseline", "2").status == 3)
        #expect(try bench.up() == ["3_c.sql"])
        #expect(try bench.value("SELECT to_regclass('a') IS NULL AND to_regclass('c') IS NOT NULL") == "t")
        #expect(try bench.run("baseline", "9").status == 2)
    }

    @Test("repair shows both checksums and refuses what is not in the history")
    func repair() throws {
        let bench = try Bench(["1_a.sql": "SELECT 1;"])
        #expect(try bench.run("repair", "1").status == 3)
        try bench.up()
        try bench.write("1_a.sql", "SELECT 1; -- mended")
        let result = try bench.run("repair", "1")
        #expect(result.status == 0 && result.output.contains(Checksum(of: Array("SELECT 1;".utf8)).hex))
        #expect(result.output.contains(Checksum(of: Array("SELECT 1; -- mended".utf8)).hex))
        #expect(try bench.run("status", "--check").status == 0)
        #expect(try bench.run("repair", "1").output == "1_a.sql: the checksum is right already\n")
    }

    @Test("a rehearsal runs everything, changes nothing, and says what it skipped")
    func rehearsal() throws {
        let bench = try Bench([
            "1_a.sql":
                "CREATE TABLE a (x int); CREATE TYPE mood AS ENUM ('sad'); SET search_path = ''; CREATE TEMP TABLE t ();",
            "2_b.sql": "INSERT INTO a VALUES (1); CREATE TEMP TABLE t (); ALTER TYPE mood ADD VALUE 'happy';",
            "3_c.sql": "-- migrate: no-transaction\nCREATE INDEX CONCURRENTLY i ON a (x);",
            "4_d.sql": "SELECT 'happy'::mood;",
        ])
        let result = try bench.run("up", "--dry-run", "--verify")
        #expect(result.status == 0, "\(result.errors)")
        let lines = result.output.split(separator: "\n")
        try #require(lines.count == 5)
        #expect(lines[0].hasSuffix("verified") && lines[1].hasSuffix("verified") && !lines[1].contains("not verified"))
        #expect(lines[2].hasSuffix("not verified: it runs without a transaction"))
        // An enum made in the same transaction may be used at once; one that was there before may not.
        #expect(lines[4] == "rolled back; nothing was changed")
        #expect(try bench.value("SELECT to_regclass('a')") == "")
        #expect(try bench.value("SELECT to_regclass('schema_migrations')") == "")
        try bench.write("5_e.sql", "SELECT * FROM missing;")
        let failing = try bench.run("up", "--dry-run", "--verify")
        #expect(failing.status == 1 && failing.errors.contains("5_e.sql:1:15: ERROR 42P01"))
        #expect(failing.errors.contains("may need what was skipped: 3_c.sql"))
    }

    @Test("a rehearsal finds deferred constraints that COMMIT would")
    func rehearsalDeferred() throws {
        let bench = try Bench([
            "1_a.sql":
                "CREATE TABLE a (x int PRIMARY KEY, y int REFERENCES a DEFERRABLE INITIALLY DEFERRED); INSERT INTO a VALUES (1, 2);"
        ])
        #expect(try bench.run("up", "--dry-run", "--verify").status == 1)
    }

    @Test("dump gives the same text twice, without versions, and no secret on pg_dump's command line")
    func dump() throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE a (x int);"])
        try bench.up()
        let first = try Probe(["dump"], database: bench.database.conninfo).wait()
        #expect(first.status == 0 && first.output.contains("CREATE TABLE public.a"), "\(first.errors)")
        #expect(!first.output.contains("Dumped "))
        #expect(try Probe(["dump"], database: bench.database.conninfo).wait().output == first.output)
        #expect(try Probe(["dump"], database: "host=/nowhere").wait().status == 4)
    }

    @Test("notices are shown with -v, warnings always, both on stderr")
    func notices() throws {
        let text = "DO $$ BEGIN RAISE NOTICE 'hello'; RAISE WARNING 'beware'; END $$;"
        let bench = try Bench(["1_a.sql": text])
        #expect(try bench.run("up").errors == "1_a.sql: WARNING: beware\n")
        try bench.write("2_b.sql", text)
        #expect(try bench.run("up", "-v").errors == "2_b.sql: NOTICE: hello\n2_b.sql: WARNING: beware\n")
    }
}
