import Foundation
import Postgres
import TestSupport
import Testing

/// What an operator can write of a player's, by `ieumd export`.
@Suite("ieumd export")
struct OperatorExportTests {
    private let database: TestDatabase
    private let daemon: DaemonProcess

    init() throws {
        database = try TestDatabase.migrated()
        daemon = try DaemonProcess(database: database.conninfo)
    }

    private func export(_ words: String...) throws -> (status: Int32, output: String, error: String) {
        try Programs.run("ieumd", ["export", "--database", database.conninfo] + words)
    }

    /// A player with a conflict, a tombstone, a revoked device and bytes that matter.
    private func storied() throws -> (device: CommandLineDevice, player: String) {
        let phone = try CommandLineDevice(registeredAt: daemon, name: "내 \"전화\"\\")
        let tablet = try CommandLineDevice(linkedTo: phone, at: daemon)
        let (client, other) = (try phone.connection(to: daemon), try tablet.connection(to: daemon))
        for (device, line) in [
            (client, #"PUSH c 한글/1 base=0 schema=3 {"a":1e400,"b" : [ ],"\u0061":"\ud83d\ude00","state":{}}  "#),
            (client, "DELETE c 한글/1 base=1"), (client, "PUSH c b base=0 \"x\""), (other, "PUSH c b base=0 []"),
            (other, "PUSH c 한글/1 base=2 null"),
        ] {
            let answer = try device.ask(line)
            try #require(answer.hasPrefix("OK "), "\(answer)")
        }
        let id = try #require(try tablet.run("status", "--json").object()["device"] as? String)
        try #require(client.ask("REVOKE \(id)") == "OK")
        return (phone, try #require(try phone.run("status", "--json").object()["player"] as? String))
    }

    @Test("writes what the player's own ieum export writes, and ieum import makes the same player of it")
    func roundTrip() throws {
        let (phone, player) = try storied()
        let folder = try TestFolder("export")
        let path = folder.path + "/player.jsonl"
        let call = try export(player, "--output", path, "--json")
        #expect(call.status == 0, "\(call)")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(try history(text) == history(phone.export()))
        #expect(try export(player).output.drop { $0 != "\n" } == history(text))
        #expect(call.output.contains("\"devices\":2,\"lastRevision\":5,\"purgedBefore\":0,"), "\(call.output)")
        let header = try #require(
            try JSONSerialization.jsonObject(with: Data(text.prefix { $0 != "\n" }.utf8)) as? [String: Any])
        let epoch = try database.connect().query("SELECT epoch::text FROM server").text(0, 0)
        #expect(header["player"] as? String == player && header["epoch"] as? String == epoch)
        let copy = try CommandLineDevice(registeredAt: daemon)
        #expect(try copy.run("import", path).status == 0)
        #expect(try history(copy.export()) == history(text))
    }

    @Test("shows a terminal nothing that would steer it, as ieum export does; a pipe gets every byte")
    func onTerminal() throws {
        let phone = try CommandLineDevice(registeredAt: daemon)
        let client = try phone.connection(to: daemon)
        #expect(try client.ask("RENAME name=\"a\u{202E}b\"") == "OK")
        #expect(try client.ask("PUSH c g\u{2066} base=0 {\"k\u{9B}31m\":\"\u{202E}\"}").hasPrefix("OK "))
        let player = try #require(try phone.run("status", "--json").object()["player"] as? String)
        for (program, words) in [
            ("ieum", "export"), ("ieumd", "export --database '\(database.conninfo)' \(player)"),
        ] {
            let command = "exec env IEUM_HOME='\(phone.home.path)' '\(Programs.url(program).path)' \(words) 2>/dev/null"
            let shown = try Programs.runInstalled(["script", "-qec", command, "/dev/null"])
            #expect(shown.status == 0)
            #expect(
                shown.output.contains(#"{"k\u009b31m":"\u202e"}"#) && shown.output.contains(#""g\u2066""#), "\(shown)")
            let odd = shown.output.unicodeScalars.filter { "\u{9B}\u{202E}\u{2066}\u{1B}".unicodeScalars.contains($0) }
            #expect(odd.isEmpty, "\(shown)")
        }
        for text in [try phone.export(), try export(player).output] {
            #expect(text.contains("{\"k\u{9B}31m\":\"\u{202E}\"}") && text.contains("\"g\u{2066}\""), "\(text)")
        }
    }

    @Test("a file is there when it is whole, for its owner alone, and never in the place of another unless told")
    func files() throws {
        let (_, player) = try storied()
        let folder = try TestFolder("export")
        let path = folder.path + "/player.jsonl"
        func contents() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.path) }
        try "mine".write(toFile: path, atomically: false, encoding: .utf8)
        let there = try export(player, "--output", path)
        #expect(there.status == 1 && there.error.contains("is there already\nChoose another"), "\(there)")
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "mine")
        #expect(try export(player, "--output", path, "--replace").status == 0)
        #expect(try String(contentsOfFile: path, encoding: .utf8).hasPrefix("{\"ieum\":\"history\""))
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        #expect(try contents() == ["player.jsonl"])

        // A file that may not grow stands for a disk that is full.
        try database.connect().execute(
            """
            INSERT INTO game_versions (player_id, revision, device_id, saved, stamp, received, schema, size, collection, game_id, outcome, state)
            SELECT player_id, 5 + n, device_id, now(), now(), now(), 0, 1002, 'c', 'g' || n, 'created', to_json(repeat('x', 1000))
              FROM devices, generate_series(1, 500) AS n WHERE player_id = '\(player)' AND revoked IS NULL;
            UPDATE players SET last_revision = 505 WHERE player_id = '\(player)';
            """)
        let other = folder.path + "/other.jsonl"
        let full = try Programs.runInstalled([
            "bash", "-c", #"trap "" XFSZ; ulimit -f 100; exec "$@""#, "-", Programs.url("ieumd").path, "export", player,
            "--database", database.conninfo, "--output", other,
        ])
        #expect(full.status == 1 && full.error.contains("other.jsonl cannot be written: File too large"), "\(full)")
        let lost = try export(player, "--output", "/nowhere/player.jsonl")
        #expect(lost.status == 1 && lost.error.contains("/nowhere/player.jsonl cannot be written"), "\(lost)")
        #expect(try contents() == ["player.jsonl"])

        // Held in its middle, and killed there.
        let locker = try database.connect()
        try locker.execute("BEGIN; LOCK TABLE game_versions IN ACCESS EXCLUSIVE MODE")
        let process = Process()
        process.executableURL = Programs.url("ieumd")
        process.arguments = ["export", player, "--database", database.conninfo, "--output", other]
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ieumd export' AND wait_event_type = 'Lock'"
        let watcher = try database.connect()
        try eventually(60, "it waits for the versions") { try watcher.query(waiting).int8(0, 0) == 1 }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        try locker.execute("ROLLBACK")
        #expect(try contents() == ["player.jsonl"])
    }

    @Test(
        "ten thousand versions take no more memory than a few, also when their reader is slow; one that leaves ends it")
    func bounded() throws {
        let (_, player) = try storied()
        func add(_ revisions: ClosedRange<Int>) throws {
            try database.connect().execute(
                """
                INSERT INTO game_versions (player_id, revision, device_id, saved, stamp, received, schema, size, collection, game_id, outcome, state)
                SELECT player_id, n, device_id, now(), now(), now(), 0, 3002, 'c', 'g' || n, 'created', to_json(repeat('x', 3000))
                  FROM devices, generate_series(\(revisions.lowerBound), \(revisions.upperBound)) AS n
                 WHERE player_id = '\(player)' AND revoked IS NULL;
                UPDATE players SET last_revision = \(revisions.upperBound) WHERE player_id = '\(player)';
                """)
        }
        // What is left each time does not fit a pipe, so that the program waits there to be looked at.
        try add(6...205)
        let few = try peak(of: player, until: 100_000)
        try add(206...10_005)
        let many = try peak(of: player, until: 30_000_000)
        #expect(many < few + 16_384, "\(many) kB of memory for 10,000 versions, \(few) for a few")
    }

    /// The most memory of an export that is read so far, in kB; then its reader leaves.
    private func peak(of player: String, until bytes: Int) throws -> Int {
        let (process, output) = (Process(), Pipe())
        process.executableURL = Programs.url("ieumd")
        process.arguments = ["export", player, "--database", database.conninfo]
        process.standardOutput = output
        try process.run()
        var count = 0
        while count < bytes {
            let data = output.fileHandleForReading.availableData
            if data.isEmpty { break }
            count += data.count
        }
        #expect(count >= bytes)
        let status = (try? String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)) ?? ""
        let peak = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }?.split(separator: " ").dropFirst()
            .first
        try output.fileHandleForReading.close()
        process.waitUntilExit()
        #expect(process.terminationStatus == 141 && process.terminationReason == .exit)
        return try #require(peak.flatMap { Int($0) })
    }

    @Test("a player who is not there, or of whom versions are gone, is told so by an exit code, and no file is made")
    func refusals() throws {
        let (_, player) = try storied()
        let folder = try TestFolder("export")
        let path = folder.path + "/player.jsonl"
        let nobody = try export("3f2a9c01-7d5e-4c2b-9a41-0b6f3d2e8c17", "--output", path)
        #expect(nobody.status == 1 && nobody.error.contains("there is no player 3f2a9c01-"), "\(nobody)")
        #expect(try export("me").status == 2)
        #expect(try export(player, "--json").status == 2)
        #expect(try Programs.run("ieumd", ["export", player, "--database", "host=/nowhere"]).status == 4)

        let dry = try Programs.run("ieumd", ["forget", player, "--dry-run", "--database", database.conninfo])
        #expect(dry.status == 0 && dry.error.contains("ieumd export \(player) --output \(player).jsonl"), "\(dry)")
        #expect(try export(player).status == 0)
        try database.connect().execute("SELECT begin_forgetting('\(player)'); SELECT forget_versions('\(player)', 2)")
        let begun = try export(player, "--output", path)
        #expect(begun.status == 3 && begun.error.contains("ieumd: being-forgotten: "), "\(begun)")
        #expect(begun.error.contains("ieumd forget \(player)"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        #expect(try Programs.run("ieumd", ["forget", player, "--yes", "--database", database.conninfo]).status == 0)
        #expect(try export(player, "--output", path).status == 1)
    }
}
