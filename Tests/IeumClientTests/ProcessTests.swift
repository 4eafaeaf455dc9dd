import Foundation
import Testing
import Wire

@testable import IeumClient

@Suite("Processes of ieum")
struct ProcessTests {
    private let folder: TemporaryFolder
    private let key: GameKey
    private let hello: [Peer.Step] = [.say(Said.greeting()), .hear("LOGIN"), .say(Said.signIn(revision: 9))]

    init() throws {
        folder = try TemporaryFolder()
        key = try GameKey(collection: "handle.game", id: "today")
        try Data("{\"a\":1}".utf8).write(to: URL(fileURLWithPath: folder.path + "/game.json"))
    }

    private var push: [String] { ["push", "handle.game", "today", "--file", folder.path + "/game.json"] }

    @Test("of two that register in one home, one gets an identity and the other asks for none")
    func twoRegister() throws {
        let token = Said.newToken()
        let peer = Peer([.say(Said.greeting()), .hear("REGISTER"), .say(Said.signIn(token, isNew: true))])
        let home = folder.path + "/new/home"
        let call = ["register", "--server", peer.address.description, "--device", "phone", "--json"]
        let both = [try RunningProgram(call, home: home), try RunningProgram(call, home: home)]
        #expect(Set(both.map { $0.end() }) == [0, 1])
        #expect(peer.heard.flatMap { $0 } == ["REGISTER device=phone"])
        #expect(try DeviceHome(path: home).identity().token == token)
        let said = both.map { $0.data + $0.talk }.joined()
        #expect(said.contains("identity-exists"))
        #expect(said.contains(token.device.description))
        #expect(!said.contains(token.text.split(separator: ".")[2]))
    }

    @Test("none of several that push at the same time forgets what another saw")
    func manyPush() throws {
        let peer = Peer(hello + [.hear("PUSH"), .say(Said.receipt(.created, 10))])
        let home = try folder.home(at: peer.address)
        let ids = (0..<6).map { "game-\($0)" }
        let programs = try ids.map { id in
            try RunningProgram(["push", "c", id, "--file", folder.path + "/game.json"], home: home.path)
        }
        #expect(programs.map { $0.end() } == ids.map { _ in 0 })
        for id in ids { #expect(try home.seen().base(for: GameKey(collection: "c", id: id)) == 10) }
    }

    @Test("killed between a push and its answer, the same call sends the same push again")
    func killed() throws {
        let peer = Peer(
            hello + [.hear("PUSH"), .say("* CHANGED revision=10\n"), .hear("never")],
            hello + [.hear("PUSH"), .say(Said.receipt(.repeated, first: .created, 10))])
        let home = try folder.home(at: peer.address)
        let first = try RunningProgram(push + ["--timeout", "600"], home: home.path)
        try first.wait("it pushes") { (peer.heard.first ?? []).count >= 2 }
        first.signal(SIGKILL)
        #expect(first.end() == -SIGKILL)
        let second = try RunningProgram(push + ["--json"], home: home.path)
        #expect(second.end() == 0)
        #expect(second.data.hasPrefix("{\"outcome\":\"repeated\",\"first\":\"created\",\"revision\":10,"))
        #expect(peer.heard[0][1] == peer.heard[1][1])
    }

    @Test("a lost conflict ends with 3, a repeated one too, and says how to see the head")
    func lost() throws {
        let head = PushReceipt.Head(
            revision: 9, saved: Said.stamp, stamp: Said.stamp, device: DeviceID(UUID()), schema: 2,
            state: Array("[1]".utf8))
        let peer = Peer(
            hello + [.hear("PUSH"), .say(Said.receipt(.lost, 10, rival: 9, head: head))],
            hello + [.hear("PUSH"), .say(Said.receipt(.repeated, first: .lost, 10, rival: 9, head: head))])
        let home = try folder.home(at: peer.address)
        let first = try RunningProgram(push, home: home.path)
        #expect(first.end() == 3)
        #expect(first.data.hasPrefix("lost: kept as revision 10, but revision 9 stays the head"))
        #expect(first.talk.contains("ieum show 10"))
        let second = try RunningProgram(push + ["--json"], home: home.path)
        #expect(second.end() == 3)
        #expect(second.talk.isEmpty)
        #expect(second.data.contains("\"head\":{\"revision\":9,"))
        #expect(second.data.hasSuffix("\"schema\":2,\"deleted\":false,\"state\":[1]}}\n"))
    }

    @Test("a watch prints each line at once, and ends by the signal that interrupts it", arguments: [SIGINT, SIGTERM])
    func interrupted(signal: Int32) throws {
        let peer = Peer(
            hello + [
                .hear("PULL"), .say("END cursor=9 more=false\n"), .hear("WATCH"),
                .say("OK revision=9\n* CHANGED revision=10\n"), .hear("PULL"),
                .say(Said.game(key, 10, "{\"a\":1}")), .say("END cursor=10 more=false\n"),
            ]
                // For a minute, which is long enough to interrupt it.
                + (1...6).flatMap { _ -> [Peer.Step] in [.hear("PING"), .say("OK\n")] })
        let program = try RunningProgram(["watch", "--json"], home: try folder.home(at: peer.address).path)
        try program.wait("it prints") { program.data.hasSuffix("\n") }
        #expect(
            program.data.hasPrefix(
                "{\"kind\":\"game\",\"collection\":\"handle.game\",\"id\":\"today\",\"revision\":10,"))
        #expect(program.data.hasSuffix("\"deleted\":false,\"state\":{\"a\":1}}\n"))
        program.signal(signal)
        #expect(program.end() == -signal, "\(program.talk)")
    }

    @Test("a pull whose reader left is quiet, ends with 141 and remembers nothing of it")
    func brokenPipe() throws {
        let peer = Peer(
            hello + [
                .hear("PULL"), .say(Said.game(key, 10, "{}")), .say("END cursor=10 more=false\n"), .hear("WATCH"),
                .say("OK revision=10\n"),
            ])
        let home = try folder.home(at: peer.address)
        let pipe = Pipe()
        try pipe.fileHandleForReading.close()
        let program = try RunningProgram(["pull"], home: home.path, output: pipe.fileHandleForWriting)
        #expect(program.end() == 141)
        #expect(program.talk.isEmpty)
        #expect(try home.seen().cursor == 0)
        let again = try RunningProgram(["pull"], home: home.path)
        #expect(again.end() == 0)
        #expect(try home.seen().cursor == 10)
    }

    @Test("a state that could not be printed does not count as seen")
    func unprinted() throws {
        let answer: [Peer.Step] = [.hear("GET"), .say(Said.game(key, 10, "{}")), .say("END\n")]
        let peer = Peer(hello + answer)
        let home = try folder.home(at: peer.address)
        let full = try FileHandle(forWritingTo: URL(fileURLWithPath: "/dev/full"))
        let program = try RunningProgram(["get", "handle.game", "today"], home: home.path, output: full)
        #expect(program.end() == 1)
        #expect(program.talk == "ieum: stdout cannot be written: No space left on device\n")
        #expect(try home.seen().base(for: key) == 0)
        #expect(try RunningProgram(["get", "handle.game", "today"], home: home.path).end() == 0)
        #expect(try home.seen().base(for: key) == 10)
    }

    @Test("what a peer says never steers the terminal")
    func escapes() throws {
        let peer = Peer(hello + [.hear("PULL"), .say("ERR busy hint=\"\\u001b[2J\" \"\u{9B}2J\u{202E}\"\n")])
        let program = try RunningProgram(["pull"], home: try folder.home(at: peer.address).path)
        #expect(program.end() == 4)
        #expect(program.talk.contains("\\u{9B}2J\\u{202E} (busy)"))
        #expect(program.talk.contains("\\u{1B}[2J"))
        #expect(!program.talk.unicodeScalars.contains { $0 == "\u{1B}" || $0 == "\u{9B}" || $0 == "\u{202E}" })
    }

    @Test("a server that does not answer ends it with 4, after the time that was given")
    func slow() throws {
        let peer = Peer([.hear("never")])
        let program = try RunningProgram(
            ["status", "--timeout", "0.1", "--json"], home: try folder.home(at: peer.address).path)
        #expect(program.end() == 4)
        #expect(program.data.contains("\"reachable\":false,\"signedIn\":null"))
    }
}
