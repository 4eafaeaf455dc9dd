import Foundation
import Postgres
import TestSupport
import Testing
import Wire

/// One database with two daemons for the tests that do them no harm.
private let sharedHouse = Result { try ImportHouse() }

/// Two daemons on one database.
struct ImportHouse {
    let database: TestDatabase
    let here: DaemonProcess
    let there: DaemonProcess

    init() throws {
        database = try TestDatabase.migrated()
        here = try DaemonProcess(database: database.conninfo)
        there = try DaemonProcess(database: database.conninfo)
    }
}

/// What stands in an export behind its first line.
func history(_ export: String) -> Substring { export.drop { $0 != "\n" } }

extension CommandLineDevice {
    /// What a signed-in connection of this device's is.
    func connection(to daemon: DaemonProcess) throws -> RawClient {
        let token = try String(contentsOf: home.appendingPathComponent("token"), encoding: .utf8)
        let client = try RawClient(port: daemon.port)
        let answer = try client.ask("LOGIN \(token.prefix(Token.textLength))")
        try #require(answer.hasPrefix("OK "), "\(answer)")
        return client
    }

    /// What the device exports.
    func export() throws -> String {
        let call = try run("export")
        try #require(call.status == 0, "\(call.talk)")
        return call.data
    }

    /// Imports a text.
    func importing(_ text: String) throws -> Call { try run("import", "-", "--json", input: text) }
}

@Suite("ieum export and import")
struct ExportImportTests {
    private let house: ImportHouse

    init() throws {
        house = try sharedHouse.get()
        // A program that ended early leaves a pipe that nobody reads.
        signal(SIGPIPE, SIG_IGN)
    }

    /// A player with conflicts, a tombstone, a game that came back, bytes that matter, and a device with a wrong clock.
    private func storied() throws -> CommandLineDevice {
        let phone = try CommandLineDevice(registeredAt: house.here, name: "내 \"전화\"\\")
        let tablet = try CommandLineDevice(linkedTo: phone, at: house.here)
        let client = try phone.connection(to: house.here)
        let other = try tablet.connection(to: house.here)
        for line in [
            #"PUSH c 한글/1 base=0 schema=3 {"a":1e400,"b" : [ ],"\u0061":"\ud83d\ude00","state":{},"x":",\"state\":"}  "#,
            "PUSH c 한글/1 base=1 null", "DELETE c 한글/1 base=2", "PUSH c b base=0 \"x\"", "DELETE never there",
            "PUSH c b base=4 saved=9999-12-31T23:59:59Z {\"n\":2}",
        ] {
            let answer = try client.ask(line)
            #expect(answer.hasPrefix("OK "), "\(answer)")
        }
        for line in ["PUSH c b base=4 {}", "PUSH c b base=0 []", "PUSH c b {\"n\":3}", "PUSH c 한글/1 base=3 true"] {
            let answer = try other.ask(line)
            #expect(answer.hasPrefix("OK "), "\(answer)")
        }
        return phone
    }

    @Test("a history comes out of another player as it went in, byte for byte, and goes on there")
    func roundTrip() throws {
        let phone = try storied()
        let exported = try phone.export()
        let copy = try CommandLineDevice(registeredAt: house.there, name: "new")
        let watcher = try copy.connection(to: house.here)
        #expect(try watcher.ask("WATCH since=0") == "OK revision=0")
        let imported = try copy.importing(exported)
        #expect(imported.status == 0, "\(imported)")
        #expect(try imported.object()["versions"] as? Int == 10)
        // A device that watches at another daemon hears of it.
        #expect(try watcher.line() == "* CHANGED revision=10")
        #expect(try history(copy.export()) == history(exported))
        func games(_ device: CommandLineDevice) throws -> [String] {
            let client = try device.connection(to: house.here)
            try client.send("PULL since=0")
            return try client.reply()
        }
        #expect(try games(copy) == games(phone))
        #expect(try copy.run("conflicts", "--json").objects().count == phone.run("conflicts", "--json").objects().count)
        // The devices of the history are named, and cannot sign in or push.
        let names = try copy.run("history", "c", "b", "--json").object()["versions"] as? [[String: Any]]
        #expect(Set(names?.compactMap { $0["deviceName"] as? String } ?? []) == ["내 \"전화\"\\", "tablet"])
        try watcher.send("DEVICES")
        let devices = try watcher.reply().filter { $0.hasPrefix("DEVICE ") }
        #expect(devices.count == 3 && devices.count { $0.contains(" revoked=") } == 2, "\(devices)")
        // The next pushes are as if nothing had been.
        let client = try copy.connection(to: house.there)
        #expect(try client.ask("PUSH c b base=6 {}").hasPrefix("OK outcome=advanced revision=11 "))
        #expect(try client.ask("PUSH c new base=0 {}").hasPrefix("OK outcome=created revision=12 "))
        #expect(try client.ask("PUSH c 한글/1 base=0 {}").hasPrefix("OK outcome=lost revision=13 "))
        let again = try copy.importing(exported)
        #expect(again.status == 1 && again.talk.contains("\"code\":\"player-not-empty\""), "\(again)")
    }

    @Test("--output writes a whole file for the owner alone, and leaves the old one where it cannot")
    func output() throws {
        let phone = try storied()
        let path = phone.folder.appendingPathComponent("games.jsonl").path
        try "old".write(toFile: path, atomically: false, encoding: .utf8)
        let call = try phone.run("export", "--output", path, "--json")
        #expect(call.status == 0, "\(call)")
        #expect(try history(String(contentsOfFile: path, encoding: .utf8)) == history(phone.export()))
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: phone.folder.path).sorted() == ["games.jsonl", "home"])
        let lost = try phone.run("export", "--output", "/nowhere/games.jsonl")
        #expect(lost.status == 1 && lost.talk.contains("/nowhere/games.jsonl cannot be written"), "\(lost)")
        // What is no file is not replaced by one.
        let pipe = phone.folder.appendingPathComponent("pipe").path
        #expect(mkfifo(pipe, 0o600) == 0)
        let refused = try phone.run("export", "--output", pipe)
        #expect(refused.status == 1 && refused.talk.contains("pipe cannot be written"), "\(refused)")
        // The checksum is one that anybody can make.
        let sum = try Programs.runInstalled([
            "bash", "-c", #"sed 1d "$1" | sed '$s/,"sha256".*//' | head -c -1 | sha256sum"#, "-", path,
        ])
        #expect(try call.object()["sha256"] as? String == String(sum.output.prefix(64)))
        let copy = try CommandLineDevice(registeredAt: house.here)
        #expect(try copy.run("import", path).status == 0)
        let empty = try CommandLineDevice(registeredAt: house.here)
        #expect(try empty.export().hasSuffix("\"purgedBefore\":0,\"sha256\":\"\(Self.emptySum)\"}\n"))
    }

    /// Of `{"end":"history","versions":0,"devices":0,"lastRevision":0,"purgedBefore":0`.
    private static let emptySum: String = {
        let text = #"{"end":"history","versions":0,"devices":0,"lastRevision":0,"purgedBefore":0"#
        let sum = try? Programs.runInstalled(["bash", "-c", "printf %s '\(text)' | sha256sum"])
        return String((sum?.output ?? "").prefix(64))
    }()

    @Test("a file that was cut off, changed or made by hand is refused with its line, and nothing of it is imported")
    func hostileFiles() throws {
        let phone = try storied()
        let lines = try phone.export().split(separator: "\n").map(String.init)
        let copy = try CommandLineDevice(registeredAt: house.here)
        func refused(_ text: String, _ code: String, _ place: String, _ comment: String) throws {
            let call = try copy.importing(text)
            #expect(call.status == 1 || call.status == 2, "\(comment): \(call)")
            #expect(call.talk.contains("\"code\":\"\(code)\"") && call.talk.contains(place), "\(comment): \(call.talk)")
            #expect(call.data.isEmpty)
        }
        func text(_ lines: [String]) -> String { lines.map { $0 + "\n" }.joined() }
        for count in [1, 2, 5, lines.count - 1] {
            try refused(
                text(Array(lines.prefix(count))), "export-truncated", "line \(count + 1) of -", "cut after \(count)")
        }
        let whole = text(lines)
        try refused(String(whole.dropLast()), "export-truncated", "line \(lines.count) of -", "no last line feed")
        try refused("", "export-damaged", "line 1 of -", "empty")
        try refused("{}\n", "export-damaged", "line 1 of -", "an object")
        try refused(
            whole.replacingOccurrences(of: "\"format\":1", with: "\"format\":2"), "export-version", "line 1 of -",
            "newer")
        try refused(
            whole.replacingOccurrences(of: "\"tablet\"", with: "\"tablot\""), "export-damaged",
            "line \(lines.count) of -",
            "another name")
        try refused(text(lines + [lines[1]]), "export-damaged", "line \(lines.count + 1) of -", "behind the end")
        var without = lines
        without.remove(at: 3)
        try refused(text(without), "export-damaged", "line \(lines.count - 1) of -", "a line less")
        try refused(text([lines[0], "[1]"]), "export-damaged", "line 2 of -", "an array")
        try refused(
            text([lines[0], "{\"device\":\"x\",\"name\":\"a\",\"created\":\"b\"}"]), "export-damaged", "line 2 of -",
            "no id")
        let huge = copy.folder.appendingPathComponent("huge").path
        try Data((lines[0] + "\n{\"x\":\"" + String(repeating: "x", count: 70 << 20)).utf8).write(
            to: URL(fileURLWithPath: huge))
        let endless = try copy.run("import", huge, "--json")
        #expect(endless.status == 2 && endless.talk.contains("export-line-too-long"), "\(endless)")
        #expect(endless.talk.contains("line 2 of \(huge)"), "\(endless)")
        // What is well formed, and sums up, but is no history: the server's turn.
        for (old, new, code, rule) in [
            (
                "\"outcome\":\"created\"", "\"outcome\":\"advanced\"", "import-refused",
                "revision 1 cannot have this outcome"
            ),
            ("\"id\":\"한글/1\"", "\"id\":\"a=b\"", "export-damaged", "an id holds neither"),
            ("\"state\":null}", "\"state\":nul}", "export-damaged", "it is deleted"),
            ("\"deleted\":false,\"state\":null", "\"deleted\":false,\"state\":nul", "invalid-json", "line 4 of -"),
            ("\"revision\":2", "\"revision\":1", "import-refused", "line 4 of -: the revisions do not ascend"),
            ("\"schema\":3", "\"schema\":4294967296", "export-damaged", "line 3 of -: its schema"),
        ] {
            try refused(Self.summedUp(whole.replacingOccurrences(of: old, with: new)), code, rule, new)
        }
        #expect(try copy.run("status", "--json").object()["lastRevision"] as? Int == 0)
        #expect(try copy.importing(whole).status == 0)
        let connection = try house.database.connect()
        let staged = "SELECT count(*) FROM import_versions"
        try eventually(60, "what was staged is forgotten") { try connection.query(staged).int8(0, 0) == 0 }
    }

    /// The text with a checksum that is right.
    private static func summedUp(_ text: String) throws -> String {
        let folder = try TemporaryDirectory.make()
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("x").path
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        let sum = try Programs.runInstalled([
            "bash", "-c", #"sed 1d "$1" | sed '$s/,"sha256".*//' | head -c -1 | sha256sum"#, "-", path,
        ])
        let mark = ",\"sha256\":\""
        let end = try #require(text.range(of: mark, options: .backwards))
        return text[..<end.upperBound] + sum.output.prefix(64) + "\"}\n"
    }

    @Test("why and conflicts tell that the loser was pruned, and count its conflict once")
    func prunedLoser() throws {
        let phone = try CommandLineDevice(registeredAt: house.here, name: "phone")
        let tablet = try CommandLineDevice(linkedTo: phone, at: house.here, name: "tablet")
        _ = try phone.push("1", "--saved", "2026-11-29T19:00:00Z")
        _ = try tablet.run("get", "handle.game", "today")
        _ = try phone.push("2", "--saved", "2026-11-29T19:10:00Z")
        _ = try tablet.push("3", "--saved", "2026-11-29T19:20:00Z")
        let player = try #require(try phone.run("status", "--json").object()["player"] as? String)
        let connection = try house.database.connect()
        // These are all versions of the player; a larger page would go on with another's.
        try connection.execute(
            "SELECT prune_versions(now() + interval '1 day', 0, '\(player)', 0, 3, false)")
        let why = try phone.run("why", "handle.game", "today").data
        #expect(why.contains("lost      revision 2, which was pruned since\n"), "\(why)")
        #expect(!why.contains("nothing lost to it") && !why.contains("conflicts met before"), "\(why)")
        #expect(try phone.run("conflicts").data.contains("pruned"))
    }

    @Test("what retention has removed is missing in the copy as well, and its marks are the same")
    func pruned() throws {
        let phone = try storied()
        let player = try #require(try phone.run("status", "--json").object()["player"] as? String)
        let connection = try house.database.connect()
        // The player's own versions are the next ten behind this key.
        try connection.execute(
            "SELECT prune_versions(now() + interval '1 day', 0, '\(player)', 0, 10, false)")
        let exported = try phone.export()
        #expect(exported.contains("\"purgedBefore\":"))
        let copy = try CommandLineDevice(registeredAt: house.here)
        #expect(try copy.importing(exported).status == 0)
        #expect(try history(copy.export()) == history(exported))
        let other = try #require(try copy.run("status", "--json").object()["player"] as? String)
        let marks = "SELECT last_revision, purged_before FROM players WHERE player_id ="
        let (one, two) = (try connection.query("\(marks) '\(player)'"), try connection.query("\(marks) '\(other)'"))
        #expect(try one.int8(0, 0) == two.int8(0, 0) && one.int8(0, 1) == two.int8(0, 1))
        #expect(try one.int8(0, 1) > 0)
    }

    @Test("a push that comes while a history is staged makes the end a refusal, and both players are unharmed")
    func pushMeanwhile() throws {
        let phone = try storied()
        let copy = try CommandLineDevice(registeredAt: house.here)
        let (client, other) = (try copy.connection(to: house.here), try copy.connection(to: house.there))
        #expect(try client.ask("IMPORT BEGIN").hasPrefix("OK import="))
        #expect(try other.ask("PUSH c mine base=0 {}").hasPrefix("OK outcome=created revision=1 "))
        #expect(try client.ask("IMPORT END versions=0 devices=0 last=0").hasPrefix("ERR player-not-empty"))
        #expect(try other.ask("PUSH c mine base=1 {}").hasPrefix("OK outcome=advanced revision=2 "))
        // Another import takes the place of one that is under way.
        let fresh = try CommandLineDevice(registeredAt: house.here)
        let (early, late) = (try fresh.connection(to: house.here), try fresh.connection(to: house.there))
        let device = "IMPORT DEVICE 7d5c3f0e-3c8e-4c7e-9d0b-2f6a1f0e5b11 created=2025-05-01T08:00:00Z name=phone"
        #expect(try early.ask("IMPORT BEGIN").hasPrefix("OK"))
        #expect(try early.ask(device) == "OK")
        #expect(try late.ask("IMPORT BEGIN").hasPrefix("OK"))
        #expect(try early.ask(device).hasPrefix("ERR no-import"))
        #expect(try early.ask("IMPORT END versions=0 devices=1 last=0").hasPrefix("ERR no-import"))
        #expect(try late.ask("IMPORT END versions=0 devices=0 last=0") == "OK revision=0")
        #expect(try fresh.importing(phone.export()).status == 0)
    }

    @Test("an import that is killed in the middle, or whose daemon is, has imported nothing, and can be repeated")
    func killed() throws {
        let database = try TestDatabase.migrated()
        var daemon = try DaemonProcess(database: database.conninfo, port: Int(FreePort.find()))
        let phone = try CommandLineDevice(registeredAt: daemon)
        let client = try phone.connection(to: daemon)
        let state = "\"" + String(repeating: "x", count: 2_000) + "\""
        for number in 1...3_000 { try client.send("PUSH c g\(number % 50) \(state)") }
        for _ in 1...3_000 { #expect(try client.line()?.hasPrefix("OK ") == true) }
        let exported = try phone.export()
        let copy = try CommandLineDevice(registeredAt: daemon)
        let connection = try database.connect()
        func staged() throws -> Int64 { try connection.query("SELECT count(*) FROM import_versions").int8(0, 0) }
        for victim in ["ieum", "ieumd"] {
            // A pipe that is held half way, so that the import stands in its middle.
            let half = exported.prefix(exported.count / 2)
            let process = Process()
            let input = Pipe()
            process.executableURL = Programs.url("ieum")
            process.arguments = ["import", "-"]
            process.environment = Sanitizer.environment.merging(["IEUM_HOME": copy.home.path]) { $1 }
            process.standardInput = input
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            try input.fileHandleForWriting.write(contentsOf: Data(half.utf8))
            try eventually(60, "half of it is staged") { try staged() > 1_000 }
            let port = daemon.port
            if victim == "ieum" {
                kill(process.processIdentifier, SIGKILL)
            } else {
                daemon.kill()
                try? input.fileHandleForWriting.write(contentsOf: Data(exported.dropFirst(half.count).utf8))
            }
            try? input.fileHandleForWriting.close()
            process.waitUntilExit()
            #expect(process.terminationStatus == (victim == "ieum" ? SIGKILL : 4))
            if victim == "ieumd" { daemon = try DaemonProcess(database: database.conninfo, port: port) }
            #expect(try copy.run("status", "--json").object()["lastRevision"] as? Int == 0)
            #expect(try copy.export().contains("\"versions\":0,"))
        }
        #expect(try copy.importing(exported).status == 0)
        #expect(try history(copy.export()) == history(exported))
        #expect(try staged() == 0)
    }

    @Test("an older daemon is told as one")
    func olderDaemon() throws {
        let phone = try CommandLineDevice(registeredAt: house.here)
        let client = try RawClient(port: house.here.port)
        // Not ours to run here: its answer to a word that it does not know is the same.
        #expect(try client.ask("VERSIONZ since=0").hasPrefix("ERR unknown-command suggestion=VERSIONS "))
        #expect(try phone.run("help", "import").data.contains("Usage: ieum import <file|->"))
    }
}
