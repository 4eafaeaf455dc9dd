import Foundation
import TestSupport
import Testing

@testable import Migrator

@Suite("--json")
struct JSONTests {
    private static func object(_ text: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)")
    }

    /// What readers of a value rely on: its keys and the kinds of what they hold, of an array the first.
    private static func shape(_ value: Any) -> String {
        switch value {
        case let object as [String: Any]:
            "{" + object.sorted { $0.key < $1.key }.map { "\($0.key):\(shape($0.value))" }.joined(separator: ",") + "}"
        case let array as [Any]: "[\(array.first.map(shape) ?? "")]"
        case is String: "text"
        case is NSNull: "null"
        default: "number"
        }
    }

    /// The shapes of the objects in Documentation/migrations.md, by the command that stands before each.
    private static func documented() throws -> [String: String] {
        let document = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Documentation/migrations.md")
        var shapes: [String: String] = [:]
        for line in try String(contentsOf: document, encoding: .utf8).split(separator: "\n") {
            let cells = line.components(separatedBy: " | `{")
            guard cells.count == 2, line.hasPrefix("| ") else { continue }
            let command = cells[0].dropFirst(2).filter { $0 != "`" }
            shapes[command] = shape(try object("{" + cells[1].prefix { $0 != "`" }))
        }
        return shapes
    }

    @Test("each command's object has the keys that the document shows")
    func documentedKeys() throws {
        let documented = try Self.documented()
        let bench = try Bench([
            "0001_a.sql": "CREATE TABLE a (x int);", "0002_b.sql": "-- migrate: no-transaction\nVACUUM a;",
            "notes.md": "",
        ])
        var checked: Set<String> = []
        func check(_ command: String, as name: String? = nil) throws {
            let words = command.split(separator: " ").map(String.init)
            let place = command == "dump" ? [] : ["--dir", bench.path, "--set", "test"]
            let result = try Probe(words + place + ["--json"], database: bench.database.conninfo).wait()
            let found = Self.shape(try Self.object(result.output))
            #expect(found == documented[name ?? command], "\(command): \(result)")
            checked.insert(name ?? command)
        }
        try check("baseline 1")
        try check("resolve 1 --not-applied", as: "resolve 1 --applied")
        #expect(try bench.run("up", "--to", "1").status == 0)
        try check("up --dry-run --verify")
        try check("status")
        try check("history")
        try check("validate")
        try check("repair 1")
        try check("dump")
        try check("new add_scores")
        try check("up")
        try bench.write("0004_d.sql", "SELECT nope;")
        try check("up", as: "any that fails")
        #expect(checked == Set(documented.keys))
    }

    @Test("a failing up says what it applied before; wrong usage is an object too")
    func failures() throws {
        let bench = try Bench(["1_a.sql": "CREATE TABLE a ();", "2_b.sql": "SELECT nope;"])
        let failed = try Self.object(bench.run("up", "--json").output)
        #expect((failed["applied"] as? [[String: Any]])?.map { $0["name"] as? String } == ["1_a.sql"])
        #expect(failed["exitCode"] as? Int == 1)
        for arguments in [["up", "--nonsense"], ["upp"], ["repair"], ["up", "--dir", "/nowhere", "--set", "x"]] {
            let result = try Probe(arguments + ["--json"], database: "host=/nowhere").wait()
            #expect(result.status == 2, "\(result)")
            #expect(try Self.object(result.output)["exitCode"] as? Int == 2)
        }
    }
}
