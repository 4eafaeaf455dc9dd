import Foundation
import Testing
import Wire

/// One daemon for the tests that do it no harm.
private let sharedDaemon = Result { try DaemonProcess() }

@Suite("ieum with a daemon")
struct CommandLineTests {
    private let daemon: DaemonProcess

    init() throws { daemon = try sharedDaemon.get() }

    private func devices() throws -> (phone: CommandLineDevice, tablet: CommandLineDevice) {
        let phone = try CommandLineDevice(registeredAt: daemon)
        return (phone, try CommandLineDevice(linkedTo: phone, at: daemon))
    }

    private func outcome(_ call: CommandLineDevice.Call) throws -> String? {
        try call.object()["outcome"] as? String
    }

    private func revision(_ call: CommandLineDevice.Call) throws -> Int {
        try #require(try call.object()["revision"] as? Int)
    }

    @Test("a game saved on one device continues on another, byte for byte, without a base being named")
    func continues() throws {
        let (phone, tablet) = try devices()
        let state = #"{"answer": "사람",  "rows":[1,2 ,3],"x":1e2,"x":2}"#
        #expect(try outcome(phone.push(state)) == "created")
        let got = try tablet.run("get", "handle.game", "today")
        #expect(got.status == 0 && got.data == state && got.talk.isEmpty)
        #expect(try outcome(tablet.push("{\"row\":2}\n")) == "advanced")
        #expect(try tablet.run("get", "handle.game", "today").data == "{\"row\":2}")
        // Its own push counts as seen.
        #expect(try outcome(tablet.push("{\"row\":3}")) == "advanced")
    }

    @Test(
        "the loser of a conflict ends with 3 and learns the head, also when it is repeated; once it saw the head it goes on"
    )
    func conflict() throws {
        let (phone, tablet) = try devices()
        _ = try phone.push("{\"n\":0}")
        _ = try tablet.run("get", "handle.game", "today")
        #expect(try outcome(tablet.push("{\"n\":2}", "--saved", "2026-11-29T20:12:00Z")) == "advanced")
        for outcome in ["lost", "repeated"] {
            let lost = try phone.push("{\"n\":1}", "--saved", "2026-11-29T20:10:00Z")
            #expect(lost.status == 3)
            let answer = try lost.object()
            #expect(answer["outcome"] as? String == outcome)
            #expect(answer["revision"] as? Int == 3)
            #expect(answer["rival"] as? Int == 2)
        }
        let history = try phone.run("history", "handle.game", "today", "--json").object()
        let versions = try #require(history["versions"] as? [[String: Any]])
        #expect(versions.compactMap { $0["outcome"] as? String } == ["lost", "advanced", "created"])
        #expect(versions.compactMap { $0["head"] as? Bool } == [false, true, false])
        let table = try phone.run("history", "handle.game", "today").data.split(separator: "\n")
        #expect(table.count == 4)
        #expect(table[2].hasPrefix("*") && table[3].contains("phone"))
        #expect(try phone.run("get", "handle.game", "today", "--revision", "3").data == "{\"n\":1}")
        #expect(try phone.run("get", "handle.game", "today").data == "{\"n\":2}")
        #expect(try outcome(phone.push("{\"n\":3}")) == "advanced")
    }

    @Test("a push beside the head is told as one, although its state was saved later")
    func beside() throws {
        let (phone, tablet) = try devices()
        _ = try phone.push("{\"n\":0}")
        _ = try tablet.run("get", "handle.game", "today")
        _ = try tablet.push("{\"n\":1}")
        // The plain list gives no states: what the phone pushes now was not made from the tablet's.
        #expect(try phone.run("pull").status == 0)
        let won = try phone.push("{\"n\":2}")
        #expect(try outcome(won) == "won")
        #expect(try won.object()["rival"] as? Int == 2)
    }

    @Test("a fresh install never overwrites progress, unless it is told to")
    func freshInstall() throws {
        let (phone, tablet) = try devices()
        _ = try phone.push("{\"level\":40}")
        let fresh = try tablet.push("{\"level\":1}")
        #expect(fresh.status == 3)
        #expect((try fresh.object()["head"] as? [String: Any])?["state"] as? [String: Int] == ["level": 40])
        #expect(try outcome(tablet.push("{\"level\":2}", "--base", "none")) == "won")
        #expect(try tablet.push("{\"level\":3}", "--base", "1").status == 0)
    }

    @Test("a deleted game ends a get with 6, is in the pull, and comes back by a push")
    func deletes() throws {
        let (phone, tablet) = try devices()
        _ = try phone.push("{\"n\":1}")
        let deleted = try phone.run("delete", "handle.game", "today", "--json")
        #expect(try outcome(deleted) == "advanced")
        let got = try tablet.run("get", "handle.game", "today")
        #expect(got.status == 6 && got.data.isEmpty)
        #expect(got.talk.contains("ieum history handle.game today"))
        let pulled = try tablet.run("pull", "--json").objects()
        #expect(pulled.compactMap { $0["deleted"] as? Bool } == [true])
        #expect(pulled.last?["cursor"] as? Int == 2)
        #expect(try outcome(tablet.push("{\"n\":2}")) == "advanced")
        #expect(try tablet.run("get", "handle.game", "other").status == 6)
        // A device that never saw a game can delete it all the same; only saves of it claim to be new.
        _ = try phone.run("push", "handle.game", "other", "--file", "-", input: "1")
        let unseen = try tablet.run("delete", "handle.game", "other", "--json")
        #expect(unseen.status == 0)
        #expect(try outcome(unseen) == "won")
        #expect(try tablet.run("get", "handle.game", "today", "--revision", "99").status == 6)
    }

    @Test("a pull lists what changed since the last, page after page, and mirrors it into a folder")
    func pulls() throws {
        let (phone, tablet) = try devices()
        // Through the wire, since 250 processes would take their time.
        let token = try String(contentsOf: phone.home.appendingPathComponent("token"), encoding: .utf8)
        let client = try RawClient(port: daemon.port)
        _ = try client.ask("LOGIN \(token.prefix(Token.textLength))")
        for index in 1...250 {
            let answer = try client.ask("PUSH c g\(index) base=0 {\"n\":\(index)}")
            #expect(answer.hasPrefix("OK outcome=created"))
        }
        let all = try tablet.run("pull")
        #expect(all.data.split(separator: "\n").count == 250)
        #expect(all.talk == "250 games, up to revision 250.\n")
        #expect(try tablet.run("pull").talk == "Nothing new since revision 250.\n")
        _ = try phone.run("delete", "c", "g7")
        let mirror = tablet.folder.appendingPathComponent("mirror")
        #expect(try tablet.run("pull", "--since", "0", "--output", mirror.path).status == 0)
        let names = try FileManager.default.contentsOfDirectory(atPath: mirror.appendingPathComponent("c").path)
        #expect(names.count == 249 && !names.contains("g7.json"))
        #expect(try String(contentsOf: mirror.appendingPathComponent("c/g9.json"), encoding: .utf8) == "{\"n\":9}")
        // The mirrored states are seen: this is no fresh install's push.
        let pushed = try tablet.run("push", "c", "g9", "--file", "-", "--json", input: "{\"n\":10}")
        #expect(try outcome(pushed) == "advanced")
    }

    @Test("a watch shows another device's push, and leaves the next pull everything")
    func watches() async throws {
        let (phone, tablet) = try devices()
        let watcher = Task.detached { try tablet.run("watch", "--once", "--timeout", "60", "--json") }
        _ = try phone.push("{\"n\":1}")
        let call = try await watcher.value
        #expect(call.status == 0)
        let object = try call.object()
        #expect(object["kind"] as? String == "game")
        #expect(object["id"] as? String == "today")
        #expect(object["state"] as? [String: Int] == ["n": 1])
        #expect(try tablet.run("pull").data.split(separator: "\n").count == 1)
        let quiet = try tablet.run("watch", "--once", "--timeout", "0.2")
        #expect(quiet.status == 4 && quiet.data.isEmpty)
        #expect(try tablet.run("watch", "--timeout", "0.2").status == 0)
    }

    @Test("names that are typed decomposed name the same game")
    func normalForm() throws {
        let phone = try CommandLineDevice(registeredAt: daemon, name: "전화기 \"1\"")
        let decomposed = "\u{1112}\u{1161}\u{11AB}"
        #expect(try phone.run("push", "c", decomposed, "--file", "-", input: "1").status == 0)
        #expect(try phone.run("get", "c", "\u{D55C}").data == "1")
        #expect(try phone.run("history", "c", decomposed).data.contains("전화기 \"1\""))
    }

    /// A state that the server refuses; shown by its code, since some are long.
    struct Refused: Sendable, CustomTestStringConvertible {
        var code: String
        var state: String
        var testDescription: String { "\(code), \(state.utf8.count) bytes" }
    }

    @Test(
        "a refusal ends with 1 and tells the server's code",
        arguments: [
            Refused(code: "invalid-json", state: "{\"answer\":"), Refused(code: "invalid-json", state: "\"\\u0000\""),
            Refused(code: "invalid-character", state: "{\"a\":\"\u{7}\"}"),
            Refused(code: "state-too-large", state: "\"" + String(repeating: "x", count: 1_048_000) + "\""),
            Refused(code: "line-too-long", state: "\"" + String(repeating: "x", count: 1_100_000) + "\""),
            Refused(
                code: "json-too-deep", state: String(repeating: "[", count: 600) + String(repeating: "]", count: 600)),
        ])
    func refusals(refused: Refused) throws {
        let phone = try CommandLineDevice(registeredAt: daemon)
        let call = try phone.push(refused.state)
        #expect(call.status == 1, "\(call.talk)")
        #expect(call.data.isEmpty)
        #expect(call.talk.contains("\"code\":\"\(refused.code)\""), "\(call.talk)")
        #expect(try outcome(phone.push("{}")) == "created")
    }

    @Test("the same time of saving for another state, and a code that was used, are refused")
    func reused() throws {
        let (phone, _) = try devices()
        let saved = ["--saved", "2026-11-29T12:00:00Z"]
        #expect(try phone.push("1", saved[0], saved[1]).status == 0)
        let reused = try phone.push("2", saved[0], saved[1])
        #expect(reused.status == 1 && reused.talk.contains("saved-reused"))
        let code = try phone.run("pair").data.trimmingCharacters(in: .whitespacesAndNewlines)
        let server = "127.0.0.1:\(daemon.port)"
        let first = try CommandLineDevice()
        #expect(try first.run("link", code, "--server", server, "--device", "a").status == 0)
        let second = try CommandLineDevice()
        let refused = try second.run("link", code, "--server", server, "--device", "b")
        #expect(refused.status == 1 && refused.talk.contains("code-invalid") && refused.talk.contains("ieum pair"))
        #expect(try second.run("status").status == 5)
        // From stdin, where others can read command lines.
        let another = try phone.run("pair").data
        let joined = try second.run("link", "-", "--server", server, "--device", "b", input: another)
        #expect(joined.status == 0, "\(joined)")
        let third = try CommandLineDevice()
        let nothing = try third.run("link", "-", "--server", server, "--device", "c", input: "")
        #expect(nothing.status == 2 && nothing.talk.contains("this is no code"), "\(nothing)")
    }

    @Test("status and ping tell how the device stands with its server; a token that is unknown there ends with 5")
    func status() throws {
        let (phone, tablet) = try devices()
        _ = try tablet.push("1")
        let status = try phone.run("status", "--json").object()
        #expect(status["signedIn"] as? Bool == true && status["reachable"] as? Bool == true)
        #expect(status["lastRevision"] as? Int == 1 && status["behind"] as? Int == 1 && status["cursor"] as? Int == 0)
        #expect(status["epoch"] as? String != nil)
        let offset = try #require(status["clockOffsetMs"] as? Double)
        #expect(abs(offset) < 5_000)
        #expect(try phone.run("status").data.contains("signed in   yes"))
        #expect(try phone.run("ping").status == 0)
        // Another secret of the same length.
        let file = phone.home.appendingPathComponent("token")
        let token = try String(contentsOf: file, encoding: .utf8)
        let last = token.dropLast(3).last == "A" ? "B" : "A"
        try (token.dropLast(4) + last + token.suffix(3)).write(to: file, atomically: false, encoding: .utf8)
        let unknown = try phone.run("status", "--json")
        #expect(unknown.status == 5)
        #expect(try unknown.object()["signedIn"] as? Bool == false)
        let refused = try phone.push("1")
        #expect(refused.status == 5 && refused.talk.contains("ieum link"))
    }

    @Test("a device whose player lives elsewhere can join again, and its old identity is kept")
    func replaces() throws {
        let (phone, tablet) = try devices()
        let code = try phone.run("pair").data.trimmingCharacters(in: .whitespacesAndNewlines)
        let server = "127.0.0.1:\(daemon.port)"
        let call = ["link", code, "--server", server, "--device", "again", "--json"]
        let refused = try tablet.run(call)
        #expect(refused.status == 1 && refused.talk.contains("--replace"))
        // The refusal cost no code.
        let replaced = try tablet.run(call + ["--replace"]).object()
        let backup = try #require(replaced["backup"] as? String)
        #expect(FileManager.default.fileExists(atPath: backup + "/token"))
        #expect(replaced["deviceName"] as? String == "again")
    }
}
