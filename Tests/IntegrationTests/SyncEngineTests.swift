import Foundation
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("the sync engine with a real daemon")
struct SyncEngineTests {
    private func unknownToken() throws -> String {
        try #require(Token(player: PlayerID(UUID()), device: DeviceID(UUID()), secret: Array(repeating: 1, count: 32)))
            .text
    }

    @Test("an unknown token is one event and one state, and no second try")
    func unknownTokenStops() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let proxy = try SyncProxy(to: daemon.port)
        let device = try SyncDevice(token: try unknownToken(), port: proxy.port)
        let engine = try #require(device.engine)
        let event = try await within(30, "the event") {
            var events = engine.events.makeAsyncIterator()
            return await events.next()
        }
        #expect(event == .signedOut(.unknownToken))
        #expect(engine.currentStatus == .signedOut)
        engine.retryNow()
        await #expect(throws: SyncError.signedOut) { try await engine.waitUntilSynced() }
        // Behind any that the engine has begun: connections are accepted in their order.
        _ = try RawClient(port: proxy.port)
        #expect(proxy.accepted == 2)
    }

    @Test("a revoked device is told once, keeps its unsent save, and tries no more")
    func revokedStops() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (_, token) = try newPlayer(daemon)
        let proxy = try SyncProxy(to: daemon.port)
        let device = try SyncDevice(token: token, port: proxy.port)
        let engine = try #require(device.engine)
        try await engine.settle()
        _ = try database.connect().query("UPDATE devices SET revoked = now()")
        proxy.cutAll()
        try await engine.reach { $0 == .signedOut }
        try device.save("today", "{\"n\":1}")
        var events = engine.events.makeAsyncIterator()
        #expect(await events.next() == .signedOut(.revoked))
        // The save has come to the engine, which has not begun anything for it.
        await #expect(throws: SyncError.signedOut) { try await engine.waitUntilSynced() }
        _ = try RawClient(port: proxy.port)
        #expect(proxy.accepted == 3)
        #expect(try engine.state(ofGame: "today", in: "handle.game") == .saved)
    }

    @Test("a server that is down at the start is found when it comes up")
    func serverComesUp() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (_, token) = try newPlayer(daemon)
        let proxy = try SyncProxy(to: Int(try FreePort.find()))
        let device = try SyncDevice(token: token, port: proxy.port)
        try device.save("today", "{\"n\":1}")
        let engine = try #require(device.engine)
        #expect(engine.currentStatus != .upToDate)
        try eventually(60, "a try failed") { proxy.accepted > 1 }
        proxy.lead(to: daemon.port)
        try await engine.settle()
        #expect(engine.currentStatus == .upToDate)
        #expect(try engine.state(ofGame: "today", in: "handle.game") == .synced)
    }

    @Test("a save by a process that is killed right after it is pushed at the next start")
    func killedAfterSave() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (client, token) = try newPlayer(daemon)
        let device = try SyncDevice(token: token, port: daemon.port, starts: false)
        try await aside { [path = device.path] in
            let process = Process()
            process.executableURL = Programs.url("sync-probe")
            process.arguments = [path, "handle.game", "today", "{\"n\":7}"]
            let output = Pipe()
            process.standardOutput = output
            try process.run()
            var reader = LineReader(output.fileHandleForReading.fileDescriptor)
            #expect(try reader.next(timeout: 60) == "saved")
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
        try device.start()
        try await device.engine?.settle()
        try client.send("GET handle.game today")
        #expect(try client.reply().first?.hasSuffix(" {\"n\":7}") == true)
    }

    @Test("a save by another process is pushed long before the next heartbeat")
    func savedByAnotherProcess() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (client, token) = try newPlayer(daemon)
        let device = try SyncDevice(token: token, port: daemon.port, starts: false)
        // The engine's own times: a heartbeat after ten seconds.
        try device.start(settings: SyncSettings())
        try await device.engine?.settle()
        try client.send("WATCH since=0")
        #expect(try client.line() == "OK revision=0")
        // Another connection is to SQLite what another process is.
        let other = try GameStore(path: device.path, schemaVersion: 1)
        var waits: [Duration] = []
        for round in 1...3 {
            let start = ContinuousClock.now
            try other.write { try $0.save(try device.key("theirs"), state: Array("{\"n\":\(round)}".utf8)) }
            #expect(try client.line() == "* CHANGED revision=\(round)")
            waits.append(ContinuousClock.now - start)
        }
        print("sync: foreign saves were pushed after \(waits)")
        #expect(try #require(waits.median) < .seconds(5))
        withExtendedLifetime(device) {}
    }

    @Test("10,000 saves of one device are all on another when its waiting ends")
    func tenThousand() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (client, token) = try newPlayer(daemon)
        let code = try #require(fields(try client.ask("PAIR"))["code"])
        let other = try #require(fields(try RawClient(port: daemon.port).ask("LINK \(code)"))["token"])
        let device = try SyncDevice(token: token, port: daemon.port, starts: false)
        try device.save((0..<10_000).map { ("game-\($0)", "{\"n\":\($0)}") })
        let start = ContinuousClock.now
        try device.start(settings: SyncSettings())
        try await device.engine?.settle(120)
        let pushed = ContinuousClock.now
        let reader = try SyncDevice(token: other, port: daemon.port, starts: false)
        try reader.start(settings: SyncSettings())
        try await reader.engine?.settle(120)
        print("sync: 10,000 pushed in \(pushed - start), pulled in \(ContinuousClock.now - pushed)")
        #expect(try reader.states().count { $0.value != nil } == 10_000)
    }

    @Test("a server that is not heard any more is noticed, though all that is sent to it arrives")
    func oneDirectionBlocked() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (_, token) = try newPlayer(daemon)
        let proxy = try SyncProxy(to: daemon.port)
        let device = try SyncDevice(token: token, port: proxy.port, starts: false)
        var settings = SyncDevice.settings
        settings.heartbeat = .milliseconds(300)
        settings.patience = .milliseconds(300)
        settings.connecting = .milliseconds(300)
        try device.start(settings: settings)
        let engine = try #require(device.engine)
        try await engine.settle()
        proxy.silenceServer(true)
        try await engine.reach { $0 == .offline }
        proxy.silenceServer(false)
        try await engine.settle()
    }

    @Test("what a restored backup lacks is offered again: dump, three pushes, restore")
    func restoredBackup() async throws {
        let folder = try TestFolder("dump")
        let dump = folder.path + "/dump"
        let database = try TestDatabase.migrated()
        var daemon = try DaemonProcess(database: database.conninfo)
        let (_, token) = try newPlayer(daemon)
        let proxy = try SyncProxy(to: daemon.port)
        let device = try SyncDevice(token: token, port: proxy.port)
        let engine = try #require(device.engine)
        try device.save("old", "{\"n\":0}")
        try await engine.settle()
        try Backup.take(of: database, to: dump)
        for number in 1...3 {
            try device.save("game-\(number)", "{\"n\":\(number)}")
            try await engine.settle()
        }
        #expect(daemon.stop() == 0)
        try Backup.bringBack(dump, to: database)
        #expect(try Programs.run("ieumd", ["restore-epoch", "--database", database.conninfo]).status == 0)
        daemon = try DaemonProcess(database: database.conninfo)
        proxy.lead(to: daemon.port)
        try await engine.settle()
        for number in 1...3 {
            let versions = try await engine.versions(ofGame: "game-\(number)", in: "handle.game")
            #expect(versions.map(\.outcome) == ["created"])
        }
        #expect(try await engine.versions(ofGame: "old", in: "handle.game").count == 1)
    }

    @Test("both sides learn of a conflict's loser, and it can be restored")
    func conflictAndRestore() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (client, token) = try newPlayer(daemon)
        let code = try #require(fields(try client.ask("PAIR"))["code"])
        let other = try #require(fields(try RawClient(port: daemon.port).ask("LINK \(code)"))["token"])
        let phone = try SyncDevice(token: token, port: daemon.port)
        try phone.save("today", "{\"row\":1}")
        try await phone.engine?.settle()
        let tablet = try SyncDevice(token: other, port: daemon.port)
        try await tablet.engine?.settle()
        phone.die()
        tablet.die()
        try phone.save("today", "{\"row\":2}")
        try tablet.save("today", "{\"row\":3}")
        try tablet.start()
        try await tablet.engine?.settle()
        try phone.start()
        let engine = try #require(phone.engine)
        try await engine.settle()
        #expect(try phone.states() == ["today": "{\"row\":3}"])
        let event = try await within(30, "the conflict") {
            var events = engine.events.makeAsyncIterator()
            return await events.next()
        }
        guard case .conflict(let conflict) = event else {
            Issue.record("\(String(describing: event))")
            return
        }
        #expect(!conflict.hasMineWon)
        #expect(conflict.loser?.state == Data("{\"row\":2}".utf8))
        #expect(conflict.winner?.state == Data("{\"row\":3}".utf8))
        let versions = try await engine.versions(ofGame: "today", in: "handle.game")
        #expect(versions.map(\.outcome) == ["lost", "advanced", "created"])
        try await engine.restore(try #require(versions.first))
        try await engine.settle()
        try await tablet.engine?.settle()
        #expect(try tablet.states() == ["today": "{\"row\":2}"])
        #expect(try tablet.store.events(limit: 10).isEmpty)
    }

    @Test(
        "a store with one player's games refuses another player's token; after a new log-in the outbox is still there")
    func otherPlayer() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (client, token) = try newPlayer(daemon)
        let stranger = try newPlayer(daemon).token
        let device = try SyncDevice(token: token, port: daemon.port)
        try await device.engine?.settle()
        device.die()
        try device.save("today", "{\"n\":1}")
        let wrong = try SyncEngine(
            storage: device.store, server: "127.0.0.1:\(daemon.port)", token: stranger, settings: SyncDevice.settings)
        try await wrong.reach { $0 == .signedOut }
        var events = wrong.events.makeAsyncIterator()
        #expect(await events.next() == .signedOut(.otherPlayer))
        // Another device of the same player: signed in anew.
        let code = try #require(fields(try client.ask("PAIR"))["code"])
        let again = try await SyncEngine.link(at: "127.0.0.1:\(daemon.port)", code: code, deviceName: "phone again")
        let right = try SyncEngine(
            storage: device.store, server: "127.0.0.1:\(daemon.port)", token: again, settings: SyncDevice.settings)
        try await right.settle()
        try client.send("GET handle.game today")
        #expect(try client.reply().first?.hasSuffix(" {\"n\":1}") == true)
    }

    @Test("a state that the server does not take is told once and kept, and the others flow")
    func tooLarge() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (_, token) = try newPlayer(daemon)
        let device = try SyncDevice(token: token, port: daemon.port)
        let engine = try #require(device.engine)
        try device.save("large", "\"" + String(repeating: "x", count: 1_100_000) + "\"")
        try device.save("bad", "\"\\u0000\"")
        try device.save("good", "{}")
        try await engine.settle()
        #expect(try engine.state(ofGame: "good", in: "handle.game") == .synced)
        let refused = try device.store.events(limit: 10).compactMap { event -> WireError.Code? in
            if case .refused(_, let error) = event.kind { error.code } else { nil }
        }
        #expect(Set(refused) == [.stateTooLarge, .invalidJSON])
        #expect(try engine.state(ofGame: "large", in: "handle.game") == .refused)
        try device.save("large", "{}")
        try await engine.settle()
        #expect(try engine.state(ofGame: "large", in: "handle.game") == .synced)
    }
}
