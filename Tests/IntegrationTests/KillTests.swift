import Foundation
import Postgres
import TestSupport
import Testing

@Suite("kill -9 under load")
struct KillTests {
    private static let times = 20

    /// Four devices: two of one player, and two of players of their own.
    private struct Crowd {
        let load: Shared<Load>
        let devices: [PushingDevice]
        let workers = Workers()

        init(_ daemon: DaemonProcess, _ random: inout SeededRandom) throws {
            let load = Shared(Load(port: daemon.port))
            var devices: [PushingDevice] = []
            func add(_ name: String, _ answer: String) throws {
                let device = try PushingDevice(name, signIn: answer, games: 4, seed: random.next(), load: load)
                devices.append(device)
            }
            let phone = try RawClient(port: daemon.port)
            try add("phone", phone.ask("REGISTER"))
            let code = try #require(fields(try phone.ask("PAIR"))["code"])
            try add("tablet", RawClient(port: daemon.port).ask("LINK \(code)"))
            for name in ["alice", "bob"] { try add(name, RawClient(port: daemon.port).ask("REGISTER")) }
            self.load = load
            self.devices = devices
            for device in devices { workers.start { try device.run() } }
        }

        /// Lets the devices push for a random while: until they were told of so many more saves.
        func work(_ random: inout SeededRandom) throws {
            let goal = load.change { load in
                load.quota += 300
                return load.acknowledged + Int.random(in: 1...600, using: &random)
            }
            try load.wait(120, for: "the devices push") { $0.acknowledged >= goal || !$0.problems.isEmpty }
        }

        func finish() throws {
            load.change { $0.isEnding = true }
            try workers.join()
        }

        /// Checks the promises against what the daemon holds.
        func check(_ daemon: DaemonProcess) throws {
            #expect(load.current.problems == [])
            var players: [String: [PushingDevice]] = [:]
            for device in devices { players[device.player, default: []].append(device) }
            #expect(players.count == 3)
            for devices in players.values {
                let client = try RawClient(port: daemon.port)
                let last = fields(try client.ask("LOGIN \(devices[0].token)"))["revision"].flatMap { Int64($0) } ?? 0
                let stored = try StoredVersions(devices[0].games, over: client)
                #expect(last > 0)
                #expect(stored.all == Array(1...max(1, last)), "revisions have gaps or stand twice")
                #expect(stored.all.count == devices.reduce(0) { $0 + $1.acknowledged.count })
                for device in devices {
                    #expect(stored.contradictions(to: device).prefix(5).isEmpty)
                    let own = try RawClient(port: daemon.port)
                    _ = try own.ask("LOGIN \(device.token)")
                    #expect(try device.repeatsThatDiffer(over: own).prefix(5).isEmpty)
                }
                #expect(fields(try client.ask("WATCH since=\(last)"))["revision"] == "\(last)")
            }
        }
    }

    @Test("of the daemon, 20 times: what was acknowledged is there, and what is repeated is there once")
    func daemonDies() throws {
        var random = SeededRandom(for: "KillTests.daemonDies")
        let folder = try TestFolder("kill-daemon")
        let directory = URL(fileURLWithPath: folder.path)
        var daemon = try DaemonProcess(directory: directory)
        let crowd = try Crowd(daemon, &random)
        for _ in 0..<Self.times {
            try crowd.work(&random)
            crowd.load.change { $0.port = nil }
            daemon.kill()
            daemon = try DaemonProcess(directory: directory)
            let port = daemon.port
            crowd.load.change { $0.port = port }
        }
        try crowd.work(&random)
        try crowd.finish()
        #expect(crowd.load.current.losses >= Self.times)
        try crowd.check(daemon)
    }

    @Test("of its PostgreSQL, 20 times: the same, and no session is lost")
    func databaseDies() throws {
        var random = SeededRandom(for: "KillTests.databaseDies")
        let daemon = try DaemonProcess(options: ["--request-timeout", "60"])
        let crowd = try Crowd(daemon, &random)
        var killed: Set<pid_t> = []
        for _ in 0..<Self.times {
            try crowd.work(&random)
            var next: pid_t?
            try eventually(60, "PostgreSQL runs again") {
                next = daemon.postmaster
                return next.map { !killed.contains($0) && kill($0, 0) == 0 } ?? false
            }
            let postmaster = try #require(next)
            #expect(kill(postmaster, SIGKILL) == 0)
            killed.insert(postmaster)
        }
        try crowd.work(&random)
        try crowd.finish()
        #expect(killed.count == Self.times)
        #expect(crowd.load.current.losses == 0, "a session was lost with PostgreSQL")
        #expect(crowd.load.current.unavailable == 0, "a push did not wait for PostgreSQL")
        try crowd.check(daemon)
    }
}
