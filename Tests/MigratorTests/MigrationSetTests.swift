import Foundation
import Testing

@testable import Migrator

@Suite("A set of migrations")
struct MigrationSetTests {
    private func embedded(_ names: String...) throws -> MigrationSet {
        try MigrationSet(name: "test", embedded: names.map { ($0, "SELECT 1;") })
    }

    /// The problems of a set that is refused.
    private func problems(_ files: [(name: String, contents: String)]) -> [Problem] {
        do throws(MigrationError) {
            _ = try MigrationSet(name: "test", embedded: files)
            return []
        } catch {
            return error.problems
        }
    }

    @Test("is ordered by the number in front, whatever the order in which it was given")
    func order() throws {
        let set = try embedded("0010_c.sql", "0002_b.sql", "0001_a.sql")
        #expect(set.files.map(\.name) == ["0001_a.sql", "0002_b.sql", "0010_c.sql"])
        #expect(set.files.map(\.version.digits) == ["1", "2", "10"])
    }

    @Test("takes versions wider than any machine number")
    func wideVersions() throws {
        let set = try embedded("20260101120000123456789_a.sql", "20260101120000123456790_b.sql")
        #expect(set.files.map(\.name) == ["20260101120000123456789_a.sql", "20260101120000123456790_b.sql"])
    }

    @Test(
        "refuses names that have no clear place in the order",
        arguments: [
            (["first.sql"], "the name has no version in front"),
            (["R__views.sql"], "the name has no version in front"),
            (["0001.sql"], "not followed by an underscore"),
            (["0001_.sql"], "not followed by an underscore"),
            (["0001-first.sql"], "not followed by an underscore"),
            (["0001_two words.sql"], "white space"),
            (["0001_a.sql", "0001_b.sql"], "has the version of 0001_a.sql"),
            (["1_a.sql", "001_b.sql"], "has the version of"),
            (["9_a.sql", "10_b.sql"], "runs after 9_a.sql but is listed before it"),
            (["20260101120000_a.sql", "202501011200000000_b.sql"], "is listed before it"),
            (["000001_init.up.sql", "000001_init.down.sql"], "has the version of"),
        ])
    func refusedNames(names: [String], message: String) {
        let found = problems(names.map { ($0, "SELECT 1;") })
        #expect(found.contains { $0.message.contains(message) && $0.hint != nil }, "\(found)")
    }

    @Test("a file for the way back beside the one for the way up is told apart from a version given twice")
    func downFiles() {
        let found = problems([("000001_init.up.sql", ""), ("000001_init.down.sql", "")])
        #expect(found.map(\.hint) == ["There are no down migrations: take the *.down.sql out of the folder."])
    }

    @Test("mixed widths are fine where the order by name is the order by number")
    func mixedWidths() throws {
        let set = try embedded("0001_a.sql", "20260101_b.sql")
        #expect(set.files.count == 2)
    }

    @Test("lists all problems at once")
    func allProblems() {
        let found = problems([("first.sql", ""), ("0001_a.sql", "a\0"), ("0002_b.sql", ""), ("2_c.sql", "")])
        #expect(found.count == 3, "\(found)")
    }

    @Test("an empty set is an error")
    func empty() {
        #expect(problems([]).map(\.message) == ["the set test holds no migrations"])
    }

    @Test(
        "refuses a set name that could not stand in a command",
        arguments: ["", "Big", "a b", String(repeating: "a", count: 64)])
    func setName(name: String) {
        #expect(throws: MigrationError.self) { try MigrationSet(name: name, embedded: [("1_a.sql", "")]) }
    }

    @Test("a NUL byte and invalid UTF-8 are named with line and byte")
    func encoding() throws {
        let folder = try TemporaryFolder()
        try folder.write("0001_a.sql", bytes: Array("SELECT 1;\nSEL\0ECT".utf8))
        try folder.write("0002_b.sql", bytes: Array("--\n\n한".utf8) + [0xFF, 0x41])
        try folder.write("0003_c.sql", bytes: [0xEF, 0xBB, 0xBF, 0xC0, 0x80])
        let error = #expect(throws: MigrationError.self) { try MigrationSet(name: "test", directory: folder.path) }
        let found = error?.problems.map {
            "\($0.file ?? ""):\($0.location?.line ?? 0):\($0.location?.column ?? 0) \($0.message)"
        }
        #expect(
            found == [
                "0001_a.sql:2:4 a NUL byte (byte 14 of the file)",
                "0002_b.sql:3:2 not valid UTF-8 (byte 8 of the file)",
                "0003_c.sql:1:1 not valid UTF-8 (byte 4 of the file)",
            ])
    }

    @Test("the first line chooses the mode, and an unknown directive is refused")
    func mode() throws {
        let set = try MigrationSet(
            name: "test",
            embedded: [
                ("1_a.sql", "-- migrate: no-transaction\r\nSELECT 1;"), ("2_b.sql", "\u{FEFF}--migrate:no-transaction"),
                ("3_c.sql", "SELECT 1; -- migrate: no-transaction"),
            ])
        #expect(set.files.map(\.mode) == [.noTransaction, .noTransaction, .transaction])
        #expect(
            problems([("1_a.sql", "-- migrate: no-transactions\n")]).map(\.message) == [
                "unknown directive \"no-transactions\""
            ])
    }

    // MARK: - Folders

    @Test("a folder gives its files, and names what it ignored")
    func folder() throws {
        let folder = try TemporaryFolder([
            "0001_a.sql": "SELECT 1;", ".hidden.sql": "", "README.md": "", "0002_b.sql": "",
        ])
        let set = try MigrationSet(name: "test", directory: folder.path)
        #expect(set.files.map(\.name) == ["0001_a.sql", "0002_b.sql"])
        #expect(set.ignored == [".hidden.sql", "README.md"])
    }

    @Test("a link to a file counts as the file; a folder, a link to nothing and another case of .sql are refused")
    func folderEntries() throws {
        let folder = try TemporaryFolder(["data": "SELECT 1;", "0003_c.SQL": ""])
        let manager = FileManager.default
        try manager.createSymbolicLink(atPath: folder.path + "/0001_a.sql", withDestinationPath: "data")
        #expect(throws: MigrationError.self) { try MigrationSet(name: "test", directory: folder.path) }
        try folder.remove("0003_c.SQL")
        #expect(try MigrationSet(name: "test", directory: folder.path).files.map(\.bytes) == [Array("SELECT 1;".utf8)])
        try manager.createSymbolicLink(atPath: folder.path + "/0002_b.sql", withDestinationPath: "nothing")
        try manager.createDirectory(atPath: folder.path + "/0004_d.sql", withIntermediateDirectories: false)
        // Nobody writes into the pipe: whoever waited for that would wait for ever.
        #expect(mkfifo(folder.path + "/0005_e.sql", 0o600) == 0)
        try manager.createSymbolicLink(atPath: folder.path + "/0006_f.sql", withDestinationPath: "0006_f.sql")
        try manager.createSymbolicLink(atPath: folder.path + "/0007_g.sql", withDestinationPath: "/dev/zero")
        let error = #expect(throws: MigrationError.self) { try MigrationSet(name: "test", directory: folder.path) }
        #expect(
            error?.problems.map { "\($0.file ?? ""): \($0.message)" } == [
                "0002_b.sql: cannot be read: No such file or directory",
                "0004_d.sql: cannot be read: not a regular file", "0005_e.sql: cannot be read: not a regular file",
                "0006_f.sql: cannot be read: Too many levels of symbolic links",
                "0007_g.sql: cannot be read: not a regular file",
            ])
    }

    @Test("a folder that is not there, or holds no migration, is a usage error")
    func noFolder() throws {
        let folder = try TemporaryFolder(["notes.txt": ""])
        for (path, reason) in [
            (folder.path, "holds no migrations"), (folder.path + "/nothing", "No such file or directory"),
            (folder.path + "/notes.txt", "Not a directory"),
        ] {
            let error = #expect(throws: MigrationError.self) { try MigrationSet(name: "test", directory: path) }
            #expect(error?.exitCode == 2)
            #expect(error?.problems.first?.message.hasSuffix(reason) == true, "\(String(describing: error))")
        }
    }
}

@Suite("A checksum")
struct ChecksumTests {
    @Test("is SHA-256")
    func vector() {
        #expect(
            Checksum(of: Array("abc".utf8)).hex == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }

    @Test("is blind to line ends and the byte order mark, and to nothing else")
    func lineEnds() throws {
        func checksum(_ text: String) throws -> Checksum {
            try #require(try MigrationSet(name: "test", embedded: [("1_a.sql", text)]).files.first).checksum
        }
        let reference = try checksum("a\n\nb\n")
        for same in ["a\r\n\r\nb\r\n", "a\r\rb\r", "\u{FEFF}a\n\r\nb\n"] { #expect(try checksum(same) == reference) }
        for other in ["a\nb\n", "a\n\nb", "a\n\nB\n", "a\n\n b\n", "a\n\r\rb\n"] {
            #expect(try checksum(other) != reference)
        }
    }
}
