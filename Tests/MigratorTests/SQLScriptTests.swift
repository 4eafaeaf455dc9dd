import Foundation
import Postgres
import TestSupport
import Testing

@testable import Migrator

@Suite("The splitter")
struct SQLScriptTests {
    static let corpus = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpus")

    static func files(_ folder: URL) -> [URL] {
        ((try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? [])
            .filter { $0.pathExtension == "sql" }
            .sorted { $0.path < $1.path }
    }

    private func statements(_ text: String) -> [String] {
        let bytes = Array(text.utf8)
        return SQLScript(bytes).statements.map { String(decoding: bytes[$0.range], as: UTF8.self) }
    }

    @Test("its parts joined give the file back, for every file of the corpus and every beginning of one")
    func joined() throws {
        let files = Self.files(Self.corpus) + Self.files(Self.corpus.appending(path: "refused"))
        #expect(files.count >= 100)
        for file in files {
            let bytes = Array(try Data(contentsOf: file))
            for end in bytes.count < 1000 ? Array(0...bytes.count) : [bytes.count] {
                let prefix = Array(bytes[..<end])
                let parts = SQLScript(prefix).parts
                #expect(parts.flatMap { prefix[$0.range] } == prefix, "\(file.lastPathComponent) up to \(end)")
                for part in parts {
                    guard let range = part.statement?.range else { continue }
                    #expect(part.range.contains(range.lowerBound) && range.upperBound <= part.range.upperBound)
                    #expect(!range.isEmpty)
                }
            }
        }
    }

    @Test("random bytes are cut without a fault of ours, and joined again")
    func random() {
        var random = SeededRandom(for: "The splitter")
        let pieces = [
            ";", "'", "\"", "$$", "$a$", "/*", "*/", "--", "\n", "\r", " ", "E'", "U&\"", "\\", "(", ")", "BEGIN",
            "ATOMIC",
            "END", "CASE", "CREATE FUNCTION", "CREATE", "OR", "REPLACE", "COPY", "FROM", "STDIN", "a", "1", "한", ".",
            "AS", "$", "e",
        ]
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0...30, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }
            let bytes = Array(text.joined(separator: Bool.random(using: &random) ? " " : "").utf8)
            let parts = SQLScript(bytes).parts
            #expect(parts.flatMap { bytes[$0.range] } == bytes)
        }
    }

    @Test("agrees with psql about every statement of the corpus")
    func psql() throws {
        let files = Self.files(Self.corpus)
        #expect(files.count >= 60)
        // One for all: whether a statement succeeds has no effect on where the next one begins.
        let database = try TestDatabase.make()
        for file in files {
            #expect(SQLScript(Array(try Data(contentsOf: file))).faults == [], "\(file.lastPathComponent)")
            try compare(file, database)
        }
    }

    /// `SPLITTER_CORPUS=FOLDER swift test --filter MigratorTests.SQLScriptTests` tries the files of other projects, which are
    /// not ours to keep here.
    static let foreignFiles: [URL] = {
        guard let folder = ProcessInfo.processInfo.environment["SPLITTER_CORPUS"] else { return [] }
        let found = FileManager.default.enumerator(at: URL(filePath: folder), includingPropertiesForKeys: nil)
        return (found?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "sql" }.sorted {
            $0.path < $1.path
        }
    }()

    @Test("agrees with psql about the files that SPLITTER_CORPUS names", .enabled(if: !foreignFiles.isEmpty))
    func foreign() throws {
        var (compared, statements) = (0, 0)
        for file in Self.foreignFiles {
            let database = try TestDatabase.make()
            guard let migration = try? MigrationFile(name: "1_a.sql", bytes: Array(try Data(contentsOf: file))) else {
                print("not read: \(file.path)")
                continue
            }
            let faults = migration.problems(in: SQLScript(migration.bytes))
            if let first = faults.first { print("refused: \(file.path): \(faults.count): \(first)") }
            // psql would obey its commands.
            guard SQLScript(migration.bytes).faults.isEmpty else { continue }
            compared += 1
            statements += try compare(file, database)
        }
        print("compared \(compared) of \(Self.foreignFiles.count) files, \(statements) statements")
    }

    /// Compares a file's statements with those that psql sends, and gives their count.
    @discardableResult
    private func compare(_ file: URL, _ database: TestDatabase) throws -> Int {
        let bytes = Array(try Data(contentsOf: file))
        let sent = try Psql.statements(of: file, database: database.conninfo)
        let texts = SQLScript(bytes).statements.map { String(decoding: bytes[$0.range], as: UTF8.self) }
        #expect(texts.count == sent.count, "\(file.path): \(texts) but psql: \(sent)")
        for (text, query) in zip(texts, sent) {
            // psql sends the comments in front too, and at the end of a file those behind.
            #expect(Psql.plain(query).contains(Psql.plain(text)), "\(file.path)")
        }
        return texts.count
    }

    @Test("what cannot be sent is found, at its line", arguments: files(corpus.appending(path: "refused")))
    func refused(file: URL) throws {
        let line = try #require(Int(file.deletingPathExtension().pathExtension))
        let migration = try MigrationFile(name: "1_a.sql", bytes: Array(try Data(contentsOf: file)))
        let problems = migration.problems(in: SQLScript(migration.bytes))
        #expect(problems.count == 1, "\(problems)")
        #expect(problems.first?.location?.line == line, "\(problems)")
        #expect(problems.first?.message.isEmpty == false)
    }

    @Test("data behind a COPY is gone over: what comes after it is looked at too")
    func copyData() throws {
        let text = """
            CREATE TABLE t (a text);
            COPY t FROM stdin;
            it's; "a $$ /* \\restrict
            \\.x
            \\.
            COMMIT;
            COPY t FROM stdin; SELECT 1;
            COPY t TO stdout;
            \\unrestrict
            COPY t FROM STDIN (FORMAT csv);
            1;
            """
        let migration = try MigrationFile(name: "1_a.sql", bytes: Array(text.utf8))
        let problems = migration.problems(in: SQLScript(migration.bytes))
        #expect(problems.map { $0.location?.line } == [2, 6, 7, 8, 9, 10], "\(problems)")
        #expect(
            statements(text) == [
                "CREATE TABLE t (a text);", "COPY t FROM stdin;", "COMMIT;", "COPY t FROM stdin;", "SELECT 1;",
                "COPY t TO stdout;", "COPY t FROM STDIN (FORMAT csv);",
            ])
    }

    @Test("a file whose way down another tool would leave out is refused", arguments: ["+goose", "+migrate"])
    func otherTools(mark: String) throws {
        let text = "-- \(mark) Up\nCREATE TABLE t ();\n\n-- \(mark) Down\nDROP TABLE t;\n"
        let migration = try MigrationFile(name: "1_a.sql", bytes: Array(text.utf8))
        let problems = migration.problems(in: SQLScript(migration.bytes))
        #expect(problems.map { $0.location?.line } == [4], "\(problems)")
    }

    @Test("what pg_dump writes of an awkward database is cut as psql cuts it, and makes the same database again")
    func dump() throws {
        let bench = try Bench()
        let source = try TestDatabase.make()
        try source.connect().execute(Self.awkward)
        let lines = try Self.dump(of: source).split(separator: "\n", omittingEmptySubsequences: false)
        let commands = lines.indices.filter { lines[$0].hasPrefix("\\") }.map { $0 + 1 }
        let refused = try MigrationFile(name: "1_a.sql", bytes: Array(lines.joined(separator: "\n").utf8))
        #expect(refused.problems(in: SQLScript(refused.bytes)).map { $0.location?.line } == commands)

        try bench.write("1_a.sql", lines.filter { !$0.hasPrefix("\\") }.joined(separator: "\n"))
        try compare(URL(filePath: bench.path + "/1_a.sql"), try TestDatabase.make())
        try bench.up { $0.historySchema = "public" }
        func schema(_ database: TestDatabase) throws -> [Substring] {
            try Self.dump(of: database).split(separator: "\n").filter { !$0.hasPrefix("\\") }
        }
        #expect(try schema(bench.database) == schema(source))
    }

    private static func dump(of database: TestDatabase) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["pg_dump", "--inserts", "-T", "public.schema_migrations", "-d", database.conninfo]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return String(decoding: data, as: UTF8.self)
    }

    /// Everything that a dump writes with semicolons, quotes and dollars in it.
    private static let awkward = #"""
        CREATE SCHEMA app;
        COMMENT ON SCHEMA app IS 'it''s; here';
        CREATE TYPE app.mood AS ENUM ('a;b', 'c''d');
        CREATE TABLE app.t (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, m app.mood, j jsonb DEFAULT '{"a":";"}', "odd;name" text);
        COMMENT ON COLUMN app.t."odd;name" IS E'line\nline; two \\ ''q''';
        CREATE FUNCTION app.f(x int) RETURNS int LANGUAGE plpgsql AS $body$ BEGIN RETURN x; -- ;
        END $body$;
        CREATE FUNCTION app.g(x int) RETURNS TABLE (a int) LANGUAGE sql BEGIN ATOMIC
            SELECT CASE WHEN x > 1 THEN (CASE x WHEN 2 THEN 1 ELSE 3 END) ELSE 2 END AS "end"; SELECT 2 AS "case"; END;
        CREATE PROCEDURE app.p() LANGUAGE sql BEGIN ATOMIC INSERT INTO app.t (m) VALUES ('a;b'); DELETE FROM app.t; END;
        CREATE FUNCTION app.h() RETURNS text LANGUAGE sql RETURN 'a;b';
        CREATE FUNCTION app.tr() RETURNS trigger LANGUAGE plpgsql
            AS $_$ BEGIN EXECUTE $$SELECT 1; $$; RETURN NEW; END $_$;
        CREATE TRIGGER tt BEFORE INSERT ON app.t FOR EACH ROW WHEN (NEW.id > 0) EXECUTE FUNCTION app.tr();
        CREATE VIEW app.v AS SELECT id, CASE WHEN id > 1 THEN ';' END AS c FROM app.t;
        CREATE RULE r AS ON INSERT TO app.v
            DO INSTEAD (INSERT INTO app.t (m) VALUES ('a;b'); UPDATE app.t SET m = 'c''d';);
        CREATE POLICY pol ON app.t USING (m = 'a;b');
        INSERT INTO app.t (m, "odd;name") VALUES ('a;b', E'tab\there; \\. back\n not\\restrict x\nline');
        """#

    @Test(
        "a string that goes on in the next line keeps its escapes, as the server has it; psql, which reads by lines, does not"
    )
    func continuedEscapes() throws {
        let text = "SELECT E'a\\'; '\n'b\\'; c';\nSELECT 2;\nSELECT 'plain\\'\n'plain\\'; SELECT E'' -- ;\n'\\';';"
        let database = try TestDatabase.make()
        let results = try database.connect().execute(text)
        #expect(statements(text).count == results.count)
        #expect(results.count == 4)
        withExtendedLifetime(database) {}
    }

    @Test("knows better than psql: a routine called begin, a column labelled end or case")
    func betterThanPsql() {
        #expect(statements("CREATE FUNCTION begin() RETURNS int RETURN 1; SELECT 2;").count == 2)
        #expect(
            statements("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1 AS end; SELECT 2 AS case; END; SELECT 3;")
                .count == 2)
        #expect(
            statements("CREATE FUNCTION f(t t) RETURNS int BEGIN ATOMIC SELECT t.end; SELECT t.case; END; SELECT 3;")
                .count == 2)
    }

    @Test("a large file is cut within seconds")
    func large() {
        #if DEBUG
            let size = 2_000_000
        #else
            let size = 50_000_000
        #endif
        let line = Array("INSERT INTO t (a, b) VALUES (1, 'some; text'); -- a comment\n".utf8)
        let count = size / line.count
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count * line.count)
        for _ in 0..<count { bytes.append(contentsOf: line) }
        let start = ContinuousClock.now
        #expect(SQLScript(bytes).statements.count == count)
        #expect(ContinuousClock.now - start < .seconds(20))
    }
}

/// What psql makes of a file: the queries that it sends, told by its own log (`--log-file`).
enum Psql {
    static func statements(of file: URL, database: String) throws -> [String] {
        let folder = try TemporaryFolder()
        let log = folder.url.appending(path: "log")
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "psql", "--no-psqlrc", "--quiet", "--log-file", log.path, "--file", file.path, "--dbname", database,
        ]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        let text = String(decoding: try Data(contentsOf: log), as: UTF8.self)
        let queries = text.components(separatedBy: "********* QUERY **********\n").dropFirst().map {
            $0.components(separatedBy: "\n**************************\n")[0]
        }
        // In a failed transaction the server refuses every statement, and lets pass only what holds none.
        let connection = try BlockingConnection(database)
        try connection.execute("BEGIN")
        #expect(throws: DatabaseError.self) { try connection.execute("SELECT 1 / 0") }
        return queries.filter { query in
            let results = try? connection.execute(query)
            return results.map { $0.contains { !$0.commandTag.isEmpty } } ?? true
        }
    }

    /// Without line ends, which psql may write otherwise.
    static func plain(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.filter { $0 != "\r" && $0 != "\n" }))
    }
}
