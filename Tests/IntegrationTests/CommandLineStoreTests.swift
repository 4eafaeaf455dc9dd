import Foundation
import TestSupport
import IeumClient
import Testing
import Wire

/// One daemon for the tests that do it no harm.
private let sharedDaemon = Result { try DaemonProcess() }

@Suite("ieum's copy of the games")
struct CommandLineStoreTests {
    private let daemon: DaemonProcess

    init() throws { daemon = try sharedDaemon.get() }

    private func devices() throws -> (phone: CommandLineDevice, tablet: CommandLineDevice) {
        let phone = try CommandLineDevice(registeredAt: daemon)
        return (phone, try CommandLineDevice(linkedTo: phone, at: daemon))
    }

    /// A connection that is signed in as a device: pushes are quicker through it than by a process each.
    private func client(_ device: CommandLineDevice) throws -> RawClient {
        let token = try String(contentsOf: device.home.appendingPathComponent("token"), encoding: .utf8)
        let client = try RawClient(port: daemon.port)
        _ = try client.ask("LOGIN \(token.prefix(Token.textLength))")
        return client
    }

    private func push(_ range: ClosedRange<Int>, _ client: RawClient) throws {
        for index in range {
            let answer = try client.ask("PUSH c g\(index) base=0 {\"n\":\(index)}")
            #expect(answer.hasPrefix("OK outcome=created"))
        }
    }

    private func ids(_ call: CommandLineDevice.Call) throws -> [String] {
        try call.objects().compactMap { $0["id"] as? String }
    }

    private func store(_ device: CommandLineDevice) throws -> GameStore {
        let home = DeviceHome(path: device.home.path)
        return try home.openStore(of: home.identity())
    }

    private func mode(_ path: String) -> UInt32? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : nil
    }

    @Test("a home without a store, as an older version left it, goes on where it was; nothing in it is open to others")
    func olderHome() throws {
        let (phone, tablet) = try devices()
        let client = try client(phone)
        try push(1...3, client)
        #expect(try ids(tablet.run("pull", "--json")) == ["g1", "g2", "g3"])
        for name in try FileManager.default.contentsOfDirectory(atPath: tablet.home.path) where name.hasPrefix("games")
        {
            try FileManager.default.removeItem(at: tablet.home.appendingPathComponent(name))
        }
        #expect(try tablet.run("status", "--json").object()["copyRevision"] is NSNull)
        try push(4...5, client)
        #expect(try ids(tablet.run("pull", "--json")) == ["g4", "g5"])
        let status = try tablet.run("status", "--json").object()
        #expect(
            status["copyGames"] as? Int == 5 && status["copyRevision"] as? Int == 5 && status["cursor"] as? Int == 5)
        // What was pulled before still counts as seen.
        let pushed = try tablet.run("push", "c", "g2", "--file", "-", "--json", input: "{}").object()
        #expect(pushed["outcome"] as? String == "advanced")
        #expect(mode(tablet.home.path) == 0o700)
        for name in try FileManager.default.contentsOfDirectory(atPath: tablet.home.path) {
            #expect(mode(tablet.home.path + "/" + name) == 0o600, "\(name)")
        }
    }

    @Test(
        "started without standard streams, it writes into no file of the home",
        arguments: [">&-", "2>&-", "<&- >&- 2>&-"])
    func closedStreams(redirection: String) throws {
        let (phone, tablet) = try devices()
        try push(1...20, client(phone))
        // A copy that is there already is opened at once.
        #expect(try tablet.run("pull").status == 0)
        let mark = tablet.home.path + "/games.sqlite-mark"
        let before = try String(contentsOfFile: mark, encoding: .utf8)
        let call = try Programs.runInstalled([
            "IEUM_HOME=\(tablet.home.path)", "/bin/sh", "-c", "exec \"$0\" pull --since 0 \(redirection)",
            Programs.url("ieum").path,
        ])
        // Who wants no talk misses nothing; data that nobody can get is a failure.
        #expect(call.status == (redirection.contains(" >&-") || redirection.hasPrefix(">&-") ? 1 : 0), "\(call)")
        #expect(try String(contentsOfFile: mark, encoding: .utf8) == before)
        #expect(try tablet.run("pull", "--since", "0").status == 0)
    }

    @Test("two pulls and a watch in one home at the same time all end well, and nothing is missing or doubled")
    func together() async throws {
        let (phone, tablet) = try devices()
        try push(1...400, client(phone))
        let all = Set((1...400).map { "g\($0)" })
        async let watched = Task.detached { try tablet.run("watch", "--once", "--json", "--timeout", "60") }.value
        async let first = Task.detached { try tablet.run("pull", "--json") }.value
        async let second = Task.detached { try tablet.run("pull", "--json") }.value
        let pulls = try await [first, second]
        for pull in pulls {
            #expect(pull.status == 0 && pull.talk.isEmpty, "\(pull.talk)")
            let ids = try ids(pull)
            #expect(Set(ids).count == ids.count)
        }
        #expect(try await watched.status == 0)
        #expect(try Set(pulls.flatMap { try ids($0) }) == all)
        #expect(try tablet.run("pull").talk == "Nothing new since revision 400.\n")
        #expect(try ids(tablet.run("pull", "--since", "0", "--json")).count == 400)
        #expect(try tablet.run("status", "--json").object()["copyGames"] as? Int == 400)
    }

    @Test("killed at any moment of a pull, nothing is lost, and the copy has each game once")
    func killed() throws {
        let (phone, tablet) = try devices()
        try push(1...600, client(phone))
        let mirror = tablet.folder.appendingPathComponent("mirror")
        for index in 0..<12 {
            let pull = Process()
            pull.executableURL = Programs.url("ieum")
            pull.arguments = ["pull", "--output", mirror.path]
            pull.environment = Sanitizer.environment.merging(
                ["IEUM_HOME": tablet.home.path, "PATH": "/usr/bin:/bin"]) { $1 }
            (pull.standardInput, pull.standardOutput) = (FileHandle.nullDevice, FileHandle.nullDevice)
            pull.standardError = FileHandle.nullDevice
            try pull.run()
            // Each time a little further into it.
            usleep(useconds_t(index) * 15_000)
            kill(pull.processIdentifier, SIGKILL)
            pull.waitUntilExit()
        }
        #expect(try tablet.run("pull", "--output", mirror.path).status == 0)
        for index in 1...600 {
            let file = mirror.appendingPathComponent("c/g\(index).json")
            #expect(try String(contentsOf: file, encoding: .utf8) == "{\"n\":\(index)}")
        }
        let ids = try ids(tablet.run("pull", "--since", "0", "--json"))
        #expect(ids == (1...600).map { "g\($0)" })
        #expect(try tablet.run("pull").talk == "Nothing new since revision 600.\n")
    }

    @Test("what another program of the home saved is told by status, sent by a pull, and its conflicts are told")
    func sends() throws {
        let (phone, tablet) = try devices()
        let key = try GameKey(collection: "handle.game", id: "today")
        try store(tablet).restore(key, state: Array("{\"n\":1}".utf8), schema: 2)
        #expect(try tablet.run("status").data.contains("unsent      1 game saved here; ieum pull sends them"))
        let sent = try tablet.run("pull", "--json")
        #expect(sent.talk == "Sent 1 save made here.\n")
        #expect(try sent.objects().first?["deviceName"] as? String == "tablet")
        #expect(try phone.run("get", "handle.game", "today").data == "{\"n\":1}")
        #expect(try tablet.run("status", "--json").object()["unsent"] as? Int == 0)
        // Both go on from there, neither having seen the other.
        try store(tablet).restore(key, state: Array("{\"n\":2}".utf8), schema: 2)
        #expect(try phone.push("{\"n\":3}").status == 0)
        let pull = try tablet.run("pull", "--json")
        #expect(pull.status == 0 && pull.talk.contains("handle.game today: the save made here lost to revision 2"))
        #expect(try pull.objects().first?["state"] as? [String: Int] == ["n": 3])
        let status = try tablet.run("status", "--json").object()
        #expect(status["conflicts"] as? Int == 1)
        // Told once; status goes on until somebody has looked.
        #expect(try tablet.run("pull").talk == "Nothing new since revision 3.\n")
    }

    @Test("a damaged copy is kept aside and filled again, and the list goes on where it was")
    func damaged() throws {
        let (phone, tablet) = try devices()
        let client = try client(phone)
        try push(1...50, client)
        #expect(try tablet.run("pull").status == 0)
        let path = tablet.home.appendingPathComponent("games.sqlite").path
        try Data(repeating: 0xA5, count: 40_000).write(to: URL(fileURLWithPath: path))
        try push(51...51, client)
        let pull = try tablet.run("pull", "--json")
        #expect(pull.status == 0, "\(pull.talk)")
        #expect(try ids(pull) == ["g51"])
        #expect(pull.talk.contains("was damaged") && pull.talk.contains(path + ".damaged-"))
        #expect(try tablet.run("status", "--json").object()["copyGames"] as? Int == 51)
    }

    @Test("what is no copy is left where it is, and what needs none works")
    func foreign() throws {
        let phone = try CommandLineDevice(registeredAt: daemon)
        let path = phone.home.appendingPathComponent("games.sqlite").path
        try Data("a photo".utf8).write(to: URL(fileURLWithPath: path))
        let foreign = try phone.run("pull", "--json")
        #expect(foreign.status == 1 && foreign.talk.contains("\"code\":\"damaged\"") && foreign.talk.contains(path))
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "a photo")
        let status = try phone.run("status", "--json")
        #expect(status.status == 1 && status.talk.contains(path))
        #expect(try status.object()["signedIn"] as? Bool == true)
        #expect(try phone.push("{}").status == 0)
    }

    @Test("another player's copy is refused by name, and goes aside with a new identity")
    func otherPlayer() throws {
        let (phone, tablet) = try devices()
        try push(1...1, client(phone))
        #expect(try tablet.run("pull").status == 0)
        let server = "127.0.0.1:\(daemon.port)"
        let other = try CommandLineDevice(registeredAt: daemon)
        for name in try FileManager.default.contentsOfDirectory(atPath: tablet.home.path) where name.hasPrefix("games")
        {
            try FileManager.default.copyItem(
                atPath: tablet.home.path + "/" + name, toPath: other.home.path + "/" + name)
        }
        let refused = try other.run("pull", "--json")
        #expect(refused.status == 1 && refused.talk.contains("\"code\":\"other-player\""), "\(refused.talk)")
        let replaced = try tablet.run("register", "--server", server, "--device", "new", "--replace", "--json").object()
        let backup = try #require(replaced["backup"] as? String)
        #expect(FileManager.default.fileExists(atPath: backup + "/games.sqlite"))
        #expect(try tablet.run("pull").talk == "Nothing new since revision 0.\n")
    }

    @Test("a change on the server is shown within a second")
    func prompt() throws {
        let (phone, tablet) = try devices()
        let client = try client(phone)
        try push(1...1, client)
        let pipe = Pipe()
        let watch = Process()
        watch.executableURL = Programs.url("ieum")
        watch.arguments = ["watch", "--json", "--timeout", "60"]
        watch.environment = Sanitizer.environment.merging(
            ["IEUM_HOME": tablet.home.path, "PATH": "/usr/bin:/bin"]) { $1 }
        (watch.standardInput, watch.standardOutput) = (FileHandle.nullDevice, pipe)
        watch.standardError = FileHandle.nullDevice
        try watch.run()
        defer {
            kill(watch.processIdentifier, SIGKILL)
            watch.waitUntilExit()
        }
        func line() -> String { String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self) }
        #expect(line().contains("\"id\":\"g1\""))
        var times: [Duration] = []
        for index in 2...6 {
            let start = ContinuousClock.now
            try push(index...index, client)
            #expect(line().contains("\"id\":\"g\(index)\""))
            times.append(.now - start)
        }
        #expect(try #require(times.median) < .seconds(1), "\(times)")
    }
}

@Suite("ieum's copy and a daemon that goes away")
struct CommandLineStoreOutageTests {
    @Test("offline, status tells how the copy stands; what a restored server lost is sent again by a pull")
    func outage() throws {
        let daemon = try DaemonProcess(port: Int(FreePort.find()))
        let phone = try CommandLineDevice(registeredAt: daemon)
        let tablet = try CommandLineDevice(linkedTo: phone, at: daemon)
        #expect(try phone.push("{\"n\":1}").status == 0)
        #expect(try tablet.run("pull", "--json").status == 0)
        #expect(daemon.stop() == 0)
        let offline = try tablet.run("status")
        #expect(offline.status == 4)
        #expect(offline.data.contains("copy        1 game here, up to revision 1"))
        #expect(try tablet.run("pull").status == 4)
        #expect(try tablet.run("watch", "--timeout", "0.1").status == 4)

        let backup = try TemporaryDirectory.make()
        defer { try? FileManager.default.removeItem(at: backup) }
        let copy = backup.appendingPathComponent("data").path
        // With its owner, who is PostgreSQL's where the tests are root's.
        #expect(try Programs.runInstalled(["cp", "-a", daemon.directory.path, copy]).status == 0)
        let second = try DaemonProcess(directory: daemon.directory, port: daemon.port)
        #expect(try phone.push("{\"n\":2}").status == 0)
        #expect(try tablet.run("pull", "--json").objects().first?["revision"] as? Int == 2)
        #expect(second.stop() == 0)
        try FileManager.default.removeItem(at: daemon.directory)
        #expect(try Programs.runInstalled(["cp", "-a", copy, daemon.directory.path]).status == 0)
        let restored = try Programs.run("ieumd", ["restore-epoch", "--data-directory", daemon.directory.path])
        #expect(restored.status == 0, "\(restored.error)")
        let third = try DaemonProcess(directory: daemon.directory, port: daemon.port)
        #expect(try phone.run("get", "handle.game", "today").data == "{\"n\":1}")
        let pull = try tablet.run("pull", "--json")
        #expect(pull.status == 0)
        #expect(pull.talk.contains("the server was restored; what it lost of the copy here was sent again"))
        #expect(try pull.objects().first?["state"] as? [String: Int] == ["n": 2])
        #expect(try phone.run("get", "handle.game", "today").data == "{\"n\":2}")
        #expect(try tablet.run("pull", "--json").talk.isEmpty)
        withExtendedLifetime((daemon, third)) {}
    }
}
