import Foundation
import Handle
import IeumClient
import TestSupport
import Testing

/// What a game's developer writes, with nothing but the public API: one player, two devices.
@Suite("a game on two devices through IeumClient")
struct TwoStoresTests {
    @Test("a game of 한들 that was begun on the phone goes on at the tablet, and back")
    func continues() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let server = "127.0.0.1:\(daemon.port)"
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ieum-two-stores-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }

        // Saved before there is any server, and synced later.
        let phone = try GameStore(at: folder.appendingPathComponent("phone.sqlite"))
        var game = Game(answer: "사람")
        _ = try game.type("ㄱㅜㄹ")
        try phone.save(game)
        let token = try await SyncEngine.register(at: server, deviceName: "phone")
        let phoneSync = try SyncEngine(store: phone, server: server, token: token)
        try await phoneSync.waitUntilSynced()

        let code = try await phoneSync.pairingCode()
        let tabletToken = try await SyncEngine.link(at: server, code: code, deviceName: "tablet")
        let tablet = try GameStore(at: folder.appendingPathComponent("tablet.sqlite"))
        #expect(try tablet.latest(Game.self) == nil)
        let tabletSync = try SyncEngine(store: tablet, server: server, token: tabletToken)
        try await tabletSync.waitUntilSynced()
        var continued = try #require(try tablet.latest(Game.self))
        #expect(continued.id == game.id)
        #expect(continued.answerBoard == game.answerBoard)
        #expect(continued.currentColumn == 3)

        // A guess here is there within seconds, without anybody asking for it.
        _ = try continued.type("ㅡㅁ")
        _ = continued.submit()
        try tablet.save(continued)
        try await tabletSync.waitUntilSynced()
        let deadline = ContinuousClock.now + .seconds(60)
        while try phone.latest(Game.self)?.currentRow != 1, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(try phone.latest(Game.self)?.answerBoard == continued.answerBoard)
        let history = try await phoneSync.versions(ofGame: game.id, in: Game.collection)
        #expect(history.count == 2)

        phoneSync.stop()
        tabletSync.stop()
        _ = daemon.stop()
    }
}
