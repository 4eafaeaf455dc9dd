import Foundation
import TestSupport
import Testing

@Suite("the session in Documentation/migrations.md")
struct MigrationSessionTests {
    @Test("is what ieumd says when its commands are typed again")
    func session() throws {
        let project = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let script = project.appendingPathComponent("script/record-migrations").path
        let programs = Programs.url("ieumd").deletingLastPathComponent().path
        let check = try Programs.runInstalled([script, "--check", programs])
        #expect(check.status == 0, "\(check.output)\(check.error)")
    }
}

@Suite("ieumd migrate and a private PostgreSQL that is not there")
struct MissingDatabaseTests {
    @Test(
        "is told apart from one that is empty, and none is made for who only asks",
        arguments: [["status", "--check"], ["history"], ["up", "--dry-run"], ["repair", "1"], ["dump"]])
    func asks(command: [String]) throws {
        let folder = try TestFolder("missing")
        let result = try Programs.run("ieumd", ["migrate"] + command + ["--data-directory", folder.path])
        #expect(result.status == 4 && result.output.isEmpty, "\(result)")
        #expect(result.error.contains("there is no private PostgreSQL in \(folder.path)"), "\(result)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test("up makes it, and the hints that follow name its folder")
    func makes() throws {
        let folder = try TestFolder("made")
        let place = ["--data-directory", folder.path]
        let up = try Programs.run("ieumd", ["migrate", "up", "--to", "1"] + place)
        #expect(up.status == 0 && up.output.hasPrefix("applied  0001_server.sql"), "\(up)")
        let status = try Programs.run("ieumd", ["migrate", "status", "--check"] + place)
        #expect(status.status == 6, "\(status)")
        #expect(status.error.contains("pending: ieumd migrate up --data-directory \(folder.path)\n"), "\(status)")
    }
}
