import Foundation
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("the sync engine after damage, limits, other players and migrations")
struct SyncRecoveryTests {
    private struct Numbered: Persistable {
        static let collection = "handle.game"
        var id = UUID().uuidString
        var timestamp = Date(timeIntervalSince1970: 1_759_258_931)
        var number: Int
    }

    private func json(_ id: String, _ key: String, _ number: Int) -> String {
        "{\"id\":\"\(id)\",\"\(key)\":\(number),\"timestamp\":\"2025-09-30T19:02:11.000000Z\"}"
    }

    /// What waiting until all is synced throws.
    private func waitingError(_ engine: SyncEngine?) async -> SyncError? {
        do {
            try await engine?.settle()
            return nil
        } catch {
            return error as? SyncError
        }
    }

    private func remove(_ path: String, _ suffixes: String...) {
        for suffix in suffixes { try? FileManager.default.removeItem(atPath: path + suffix) }
    }

    @Test("a schema migration meets a new epoch with pushes in flight: each game is there once, in both shapes' place")
    func migrationInNewEpoch() async throws {
        let folder = try TestFolder("dump")
        let dump = folder.path + "/dump"
        let database = try TestDatabase.migrated()
        var daemon = try DaemonProcess(database: database.conninfo)
        let (client, token) = try newPlayer(daemon)
        let code = try #require(fields(try client.ask("PAIR"))["code"])
        let other = try #require(fields(try RawClient(port: daemon.port).ask("LINK \(code)"))["token"])
        let proxy = try SyncProxy(to: daemon.port)
        let device = try SyncDevice(token: token, port: proxy.port)
        try device.save("old", json("old", "n", 0))
        try await device.engine?.settle()
        try Backup.take(of: database, to: dump)
        // What the backup lacks, acknowledged; and what is stored there without the device having heard of it.
        try device.save("later", json("later", "n", 1))
        try await device.engine?.settle()
        proxy.silenceServer(true)
        try device.save((0..<5).map { ("flight-\($0)", json("flight-\($0)", "n", 10 + $0)) })
        try eventually(60, "the pushes are in flight") { try device.store.syncPoint().unanswered == 5 }
        // One of them is changed again, and never sent.
        try device.save("flight-0", json("flight-0", "n", 99))
        device.die()
        proxy.cutAll()
        proxy.silenceServer(false)
        #expect(daemon.stop() == 0)
        try Backup.bringBack(dump, to: database)
        #expect(try Programs.run("ieumd", ["restore-epoch", "--database", database.conninfo]).status == 0)
        daemon = try DaemonProcess(database: database.conninfo)
        proxy.lead(to: daemon.port)

        // The next launch is of a newer app.
        let ladder = SchemaLadder(to: 2) { migration, _ in
            try migration.renameProperty(onType: Numbered.self, from: "n", to: "number")
        }
        let store = try GameStore(path: device.path, ladder: ladder)
        #expect(try store.syncPoint().unanswered == 5)
        let engine = try SyncEngine(
            storage: store, server: "127.0.0.1:\(proxy.port)", token: token, settings: SyncDevice.settings)
        try await engine.settle()
        let expected = [
            "flight-0": 99, "flight-1": 11, "flight-2": 12, "flight-3": 13, "flight-4": 14, "later": 1, "old": 0,
        ]
        func numbers(_ store: GameStore) throws -> [String: Int] {
            Dictionary(uniqueKeysWithValues: try store.objects(Numbered.self).map { ($0.id, $0.number) })
        }
        #expect(try numbers(store) == expected)
        #expect(try store.heldGames().values.allSatisfy { $0.standing == .synced && $0.sending == nil })
        #expect(try store.events(limit: 10).isEmpty)
        for id in expected.keys {
            let outcomes = try await engine.versions(ofGame: id, in: "handle.game").map(\.outcome)
            #expect(outcomes == (id == "flight-0" ? ["advanced", "created"] : ["created"]), "\(id)")
        }
        // Another device with the newer app reads both shapes.
        let second = try GameStore(path: folder.path + "/second.sqlite", ladder: ladder)
        let reader = try SyncEngine(
            storage: second, server: "127.0.0.1:\(proxy.port)", token: other, settings: SyncDevice.settings)
        try await reader.settle()
        #expect(try numbers(second) == expected)
    }

    @Test("what a store lost with its log, or with its file, the server brings back", arguments: [true, false])
    func lostSaves(isLog: Bool) async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (_, token) = try newPlayer(daemon)
        let device = try SyncDevice(token: token, port: daemon.port)
        try device.save("one", "{\"n\":1}")
        try await device.engine?.settle()
        try device.store.checkpoint()
        let early = folderCopy(device.path)
        for number in 2...4 { try device.save("game-\(number)", "{\"n\":\(number)}") }
        try await device.engine?.settle()
        let all = try device.states()
        device.die()
        remove(device.path, "", "-wal", "-shm")
        try (isLog ? early : Data(repeating: 0xA5, count: 20_000)).write(to: URL(fileURLWithPath: device.path))
        try device.start()
        #expect(device.store.damage?.extent == (isLog ? .lastSaves : .wholeFile))
        try await device.engine?.settle()
        #expect(try device.states() == all)
        #expect(try device.store.events(limit: 10).isEmpty)
    }

    private func folderCopy(_ path: String) -> Data {
        let copying = try? Process.run(URL(fileURLWithPath: "/bin/cp"), arguments: [path, path + ".early"])
        copying?.waitUntilExit()
        return (try? Data(contentsOf: URL(fileURLWithPath: path + ".early"))) ?? Data()
    }

    @Test("a damaged state is fetched again, while the engine runs, and kept aside")
    func damagedState() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (_, token) = try newPlayer(daemon)
        let device = try SyncDevice(token: token, port: daemon.port)
        let game = Numbered(id: "one", number: 7)
        try device.store.save(game)
        try await device.engine?.settle()
        try device.store.write { try $0.connection.run("UPDATE games SET state = ?", .bytes([0xA5, 0xA5])) }
        #expect(throws: StoreError.self) { try device.store.object(Numbered.self, id: "one") }
        try eventually(60, "the server's copy is here") {
            (try? device.store.object(Numbered.self, id: "one"))?.number == 7
        }
        #expect(try device.store.damagedStates().map(\.bytes) == [Data([0xA5, 0xA5])])
    }

    @Test("a refused game is told again at the next launch, and taken by a server that takes more")
    func largerLimit() async throws {
        let database = try TestDatabase.migrated()
        var daemon: DaemonProcess? = try DaemonProcess(database: database.conninfo, options: ["--max-line", "8192"])
        let (_, token) = try newPlayer(try #require(daemon))
        let proxy = try SyncProxy(to: try #require(daemon).port)
        let device = try SyncDevice(token: token, port: proxy.port)
        try device.save("large", "\"" + String(repeating: "x", count: 20_000) + "\"")
        try await device.engine?.settle()
        #expect(try device.engine?.state(ofGame: "large", in: "handle.game") == .refused)
        for event in try device.store.events(limit: 10) { try device.store.removeEvent(event.id) }
        device.die()
        try device.start()
        try await device.engine?.settle()
        #expect(device.engine?.currentStatus == .upToDate)
        #expect(try device.store.events(limit: 10).count == 1)
        #expect(daemon?.stop() == 0)
        daemon = try DaemonProcess(database: database.conninfo)
        proxy.lead(to: try #require(daemon).port)
        proxy.cutAll()
        try await within(60, "the larger limit") { [engine = try #require(device.engine)] in
            while try engine.state(ofGame: "large", in: "handle.game") != .synced {
                try Task.checkCancellation()
                try await engine.waitUntilSynced()
            }
        }
    }

    @Test("another player's token is told as the trouble; the games go over when they are given, and never before")
    func givenToAnotherPlayer() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (_, token) = try newPlayer(daemon)
        let (strangers, stranger) = try newPlayer(daemon)
        let device = try SyncDevice(token: token, port: daemon.port)
        try device.save([("one", "{\"n\":1}"), ("two", "{\"n\":2}"), ("gone", "{}")])
        try await device.engine?.settle()
        try device.save("gone", nil)
        try await device.engine?.settle()
        device.die()
        let address = "127.0.0.1:\(daemon.port)"
        func engine() throws -> SyncEngine {
            try SyncEngine(storage: device.store, server: address, token: stranger, settings: SyncDevice.settings)
        }
        var wrong: SyncEngine? = try engine()
        try await wrong?.reach { $0 == .signedOut }
        #expect(wrong?.trouble == .otherPlayer)
        #expect(await waitingError(wrong) == .otherPlayer)
        #expect(throws: StoreError.self) { try device.store.giveGames(toPlayerOf: stranger) }
        wrong = nil
        try strangers.send("PULL limit=10")
        #expect(try strangers.reply().count == 1)
        #expect(try device.store.giveGames(toPlayerOf: stranger))
        let right = try engine()
        try await right.settle()
        #expect(right.trouble == nil)
        try strangers.send("PULL limit=10")
        #expect(try strangers.reply().dropLast().count == 2)
    }

    @Test("an engine made before its predecessor is gone hears of saves all the same")
    func successor() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (client, token) = try newPlayer(daemon)
        let device = try SyncDevice(token: token, port: daemon.port)
        try await device.engine?.settle()
        // The new one is made while the old one is still there, and takes its place.
        try device.start()
        var engine: SyncEngine? = try SyncEngine(
            storage: device.store, server: "127.0.0.1:\(daemon.port)", token: token, settings: SyncDevice.settings)
        engine = try SyncEngine(
            storage: device.store, server: "127.0.0.1:\(daemon.port)", token: token, settings: SyncDevice.settings)
        try await engine?.settle()
        try client.send("WATCH since=0")
        #expect(try client.line() == "OK revision=0")
        try device.save("today", "{\"n\":1}")
        #expect(try client.line() == "* CHANGED revision=1")
    }

    @Test("who waits is told that the store's file is gone")
    func fileGone() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (_, token) = try newPlayer(daemon)
        let device = try SyncDevice(token: token, port: daemon.port)
        let engine = try #require(device.engine)
        try await engine.settle()
        remove(device.path, "", "-wal", "-shm")
        let error = await waitingError(engine)
        guard case .storage(let reason)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(reason.contains("is gone"))
        #expect(engine.trouble == .storage(reason))
    }
}
