import Foundation
import Postgres
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("looking after devices: ieum devices, the library, and what an operator sees")
struct DeviceCommandTests {
    @Test("ieum devices lists, renames and revokes; a name steers no terminal, and a script must say --yes")
    func commandLine() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let phone = try CommandLineDevice(registeredAt: daemon)
        let tablet = try CommandLineDevice(linkedTo: phone, at: daemon)
        func list(_ device: CommandLineDevice) throws -> [[String: Any]] {
            try #require(try device.run("devices", "--json").object()["devices"] as? [[String: Any]])
        }
        #expect(try Set(list(phone).compactMap { $0["name"] as? String }) == ["phone", "tablet"])
        #expect(try list(tablet).filter { $0["this"] as? Bool == true }.map { $0["name"] as? String } == ["tablet"])
        #expect(try phone.run("devices", "rename", "my \u{202E}phone").status == 0)
        #expect(try phone.run("devices", "rename", "tablet", "old tablet").status == 0)
        #expect(try phone.run("status").data.contains("my \\u{202E}phone"), "the home knows the new name")
        let table = try tablet.run("devices")
        #expect(table.data.contains("my \\u{202E}phone") && !table.data.contains("\u{202E}"), "\(table)")
        #expect(table.data.contains("old tablet") && table.data.contains("this device"))
        for name in ["", String(repeating: "a", count: 65), "a\u{1B}[2Jb", "a\nb"] {
            #expect(try phone.run("devices", "rename", name).status != 0, "\(name)")
        }
        #expect(try phone.run("devices", "rename", "'; DROP TABLE devices; --").status == 0)
        #expect(
            try Set(list(phone).compactMap { $0["name"] as? String }) == ["'; DROP TABLE devices; --", "old tablet"])

        let unsure = try phone.run("devices", "revoke", "old tablet")
        #expect(unsure.status == 2 && unsure.talk.contains("--yes"), "\(unsure)")
        #expect(try phone.run("devices", "revoke", "phoone", "--yes").talk.contains("List them: ieum devices"))
        let id = try #require(try list(tablet).first { $0["this"] as? Bool == true }?["device"] as? String)
        #expect(try phone.run("devices", "revoke", String(id.prefix(8)), "--yes").status == 0)
        let gone = try tablet.run("devices")
        #expect(gone.status == 5 && gone.talk.contains("device-revoked"), "\(gone)")
        #expect(try list(phone).filter { $0["revoked"] is String }.map { $0["device"] as? String } == [id])
        #expect(try phone.run("devices", "remove").talk.contains("there is no ieum devices remove"))
        let own = try #require(try list(phone).first { $0["this"] as? Bool == true }?["device"] as? String)
        #expect(try phone.run("devices", "revoke", own, "--yes").status == 0)
        #expect(try phone.run("devices").status == 5)
    }

    @Test("a watch of a device that is revoked says how to join again; one beside a rotated token goes on")
    func watching() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let phone = try CommandLineDevice(registeredAt: daemon)
        let tablet = try CommandLineDevice(linkedTo: phone, at: daemon)
        let watch = try tablet.begin("watch")
        try eventually(60, "it watches") { watch.talk.contains("Watching") }
        for round in 1...2 {
            #expect(try tablet.run("devices", "rotate").status == 0)
            try eventually(60, "it watches again") {
                watch.talk.components(separatedBy: "Watching").count == 2 + round || !watch.isRunning
            }
            try #require(watch.isRunning, "\(watch.talk)")
        }
        #expect(try phone.run("devices", "revoke", "tablet", "--yes").status == 0)
        #expect(try watch.end() == 5)
        #expect(watch.talk.contains("Join again: ieum pair"), "\(watch.talk)")
        #expect(!watch.talk.contains("Try again"))
    }

    @Test("on a terminal ieum devices revoke asks, and no is no")
    func asks() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let phone = try CommandLineDevice(registeredAt: daemon)
        func onTerminal(_ typed: String) throws -> (status: Int32, output: String, error: String) {
            let call = "IEUM_HOME=\(phone.home.path) \(Programs.url("ieum").path) devices revoke phone"
            return try Programs.runInstalled(
                ["bash", "-c", "{ sleep 1; printf '%s\\n' '\(typed)'; sleep 1; } | script -qec '\(call)' /dev/null"])
        }
        let declined = try onTerminal("no")
        #expect(declined.status == 1 && declined.output.contains("nothing was revoked"), "\(declined)")
        #expect(try phone.run("devices").status == 0)
        #expect(try onTerminal("yes").status == 0)
        #expect(try phone.run("devices").status == 5)
    }

    @Test("a game lists, renames and revokes devices, rotates its token, and is signed out when it is revoked itself")
    func library() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let server = "127.0.0.1:\(daemon.port)"
        let token = try await SyncEngine.register(at: server, deviceName: "phone")
        let device = try SyncDevice(token: token, port: daemon.port)
        let engine = try #require(device.engine)
        try device.save("today", "{\"n\":1}")
        try await engine.settle()
        let other = try await SyncEngine.link(at: server, code: engine.pairingCode(), deviceName: "lost")
        var devices = try await engine.devices()
        #expect(devices.map(\.name) == ["lost", "phone"])
        let own = try #require(devices.first { $0.isThisDevice })
        #expect(own.name == "phone" && own.lastSave != nil && own.revoked == nil)
        try await engine.rename(own, to: "new phone")
        try await engine.revoke(devices[0])
        devices = try await engine.devices()
        #expect(devices.map(\.name) == ["new phone", "lost"])
        #expect(devices[1].revoked != nil)
        let lost = try SyncDevice(token: other, port: daemon.port)
        try await #require(lost.engine).reach { $0 == .signedOut }
        await #expect(throws: SyncError.self) { try await engine.rename(own, to: "") }

        let new = try await engine.rotateToken()
        #expect(new != token)
        try await engine.settle()
        device.die()
        let renewed = try SyncEngine(store: device.store, server: server, token: new)
        try device.save("today", "{\"n\":2}")
        try await renewed.settle()
        try await renewed.revoke(#require(try await renewed.devices().first { $0.isThisDevice }))
        try await renewed.reach { $0 == .signedOut }
        #expect(try device.states() == ["today": "{\"n\":2}"])
    }

    @Test("a code of the library's register opens a server by invitation, and a wrong one says why not")
    func registerByInvite() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo, options: ["--registration", "invite"])
        let server = "127.0.0.1:\(daemon.port)"
        let made = try Programs.run("ieumd", ["invite", "--json", "--database", database.conninfo]).output
        let list = try #require(try JSONSerialization.jsonObject(with: Data(made.utf8)) as? [[String: String]])
        let code = try #require(list[0]["code"])
        func refusal(_ invite: String?) async throws -> String? {
            do {
                _ = try await SyncEngine.register(at: server, deviceName: "phone", invite: invite)
                return nil
            } catch let error as SyncError {
                guard case .refused(let code, _, _) = error else { throw error }
                return code
            }
        }
        #expect(try await refusal(nil) == "invite-required")
        #expect(try await refusal("what?") == "invite-invalid")
        #expect(try await refusal(code) == nil)
        #expect(try await refusal(code) == "invite-invalid")
    }

    @Test("an operator finds players by id and by a device's name, page by page, and lists their devices")
    func operatorLooks() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        var ids: [String] = []
        for number in 0..<12 {
            let client = try RawClient(port: daemon.port)
            let name =
                number == 3 ? "Anna's 100%_phone" : number == 4 ? "\\u202e; DROP TABLE players" : "device \(number)"
            ids.append(try #require(fields(try client.ask("REGISTER device=\"\(name)\""))["player"]))
            for push in 0..<number { #expect(try client.ask("PUSH g x\(push) {\"n\":1}").hasPrefix("OK ")) }
        }
        func run(_ arguments: String...) throws -> (status: Int32, output: String, error: String) {
            try Programs.run("ieumd", arguments + ["--database", database.conninfo])
        }
        func players(_ arguments: String...) throws -> [[String: Any]] {
            let result = try Programs.run(
                "ieumd", ["players", "--json"] + arguments + ["--database", database.conninfo])
            #expect(result.status == 0, "\(result)")
            return try result.output.split(separator: "\n").map {
                try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
        }
        let all = try players()
        #expect(all.compactMap { $0["player"] as? String } == ids.sorted())
        let busiest = try #require(all.first { $0["player"] as? String == ids[11] })
        #expect(busiest["games"] as? Int == 11 && busiest["versions"] as? Int == 11 && busiest["bytes"] as? Int == 77)
        #expect(busiest["devices"] as? Int == 1 && busiest["lastPush"] is String)
        let first = try players("--limit", "5")
        let second = try players("--limit", "50", "--after", try #require(first.last?["player"] as? String))
        #expect((first + second).compactMap { $0["player"] as? String } == ids.sorted())
        #expect(try run("players", "--limit", "5").error.hasPrefix("More: add --after "))
        func found(_ text: String) throws -> [String] {
            try players("--search", text).compactMap { $0["player"] as? String }
        }
        #expect(try found(String(ids[5].prefix(13)).uppercased()) == [ids[5]])
        #expect(try found("anna's 100%_p") == [ids[3]])
        #expect(try found("anna%") == [] && found("_nna") == [] && found("x' OR 'a' = 'a") == [] && found("\\") == [])
        #expect(try Set(found("DEVICE 1")) == [ids[1], ids[10], ids[11]])
        let table = try run("devices", ids[4])
        #expect(
            table.status == 0 && table.output.contains("\\u{202E}; DROP") && !table.output.contains("\u{202E}"),
            "\(table)")
        let code = try run("pair", ids[4]).output.trimmingCharacters(in: .newlines)
        let linked = try RawClient(port: daemon.port).ask("LINK \(code) device=found")
        #expect(fields(linked)["player"] == ids[4])
        #expect(try run("pair", UUID().uuidString).status == 1)
        #expect(try run("devices", UUID().uuidString).status == 1)
        #expect(try run("devices", "x").status == 2)
        #expect(try run("players").output.split(separator: "\n").count == 13)
    }

    @Test("on a terminal JSON escapes what would turn its text around, and says the same")
    func jsonOnTerminal() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (phone, token) = try newPlayer(daemon)
        #expect(try phone.ask("RENAME name=\"a \u{202E}b\"") == "OK")
        let player = try #require(Token(token)).player.description
        let words = [Programs.url("ieumd").path, "devices", player, "--json", "--database", database.conninfo]
        let piped = try Programs.runInstalled(words).output
        #expect(piped.contains("a \u{202E}b"), "\(piped)")
        let call = words.map { "'\($0)'" }.joined(separator: " ")
        let shown = try Programs.runInstalled(["script", "-qec", call, "/dev/null"]).output
        #expect(shown.contains(#"a \u202eb"#) && !shown.contains("\u{202E}"), "\(shown)")
    }

    @Test("searches by name and by id use indexes")
    func plans() throws {
        let database = try TestDatabase.migrated()
        let connection = try database.connect()
        try connection.execute(
            """
            INSERT INTO players (player_id) SELECT gen_random_uuid() FROM generate_series(1, 20000);
            INSERT INTO devices (player_id, device_id, name, token_hash)
            SELECT player_id, gen_random_uuid(), 'device ' || md5(player_id::text), sha256('x') FROM players;
            ANALYZE;
            """)
        let plan = try connection.execute(
            """
            EXPLAIN SELECT DISTINCT d.player_id FROM devices AS d
             WHERE d.player_id > '00000000-0000-0000-0000-000000000000' AND lower(d.name) LIKE lower('Device abc%')
             ORDER BY d.player_id LIMIT 51
            """)
        var text = ""
        for result in plan { for row in 0..<result.rowCount { text += try result.text(row, 0) + "\n" } }
        #expect(text.contains("devices_name_idx") && !text.contains("Seq Scan"), "\(text)")
    }
}
