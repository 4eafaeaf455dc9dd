import Foundation
import IeumClient
import TestSupport
import Testing

/// What the pages SyncingAndConflicts.md and ComingFromRealmSwift.md show, run against a real daemon.
@Suite("syncing, as the pages show it")
struct GuideSnippets {
    struct Match: Persistable, Equatable {
        static let collection = "my.match"
        var id = "today"
        var timestamp = Date()
        var score = 0
        static var defaults: Match? { Match() }
    }

    @Test("two devices, a conflict, its events, the history, and the loser back")
    func syncing() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let server = "127.0.0.1:\(daemon.port)"
        let tablet = try GameStore.inMemory()
        let store = try GameStore.inMemory()

        // snippet
        let token = try await SyncEngine.register(at: server, deviceName: "phone")
        let sync = try SyncEngine(store: store, server: server, token: token)
        // end

        // snippet
        let code = try await sync.pairingCode()
        // end
        let tabletToken: String
        do {
            // snippet
            let token = try await SyncEngine.link(at: server, code: code, deviceName: "tablet")
            // end
            tabletToken = token
        }
        let tabletSync = try SyncEngine(store: tablet, server: server, token: tabletToken)

        let shown = Shared<[SyncStatus]>([])
        func show(_ text: String) {}
        func show(_ fraction: Double) {}
        let watching = Task {
            // snippet
            for await status in sync.status {
                switch status {
                case .offline: show("offline; playing goes on")
                case .connecting: show("connecting")
                case .syncing(let progress): show(progress.fraction)
                case .upToDate: show("everything is on the server")
                case .signedOut: show("signed out")
                }
                // hide
                shown.change { $0.append(status) }
                // show
            }
            // end
        }
        defer { watching.cancel() }

        var match = Match(score: 1)
        try store.save(match)
        // snippet
        let state = try sync.state(ofGame: match.id, in: Match.collection)
        // end
        #expect(state == .saved || state == .synced)
        // snippet
        try await sync.waitUntilSynced()
        // end
        try await tabletSync.waitUntilSynced()
        #expect(try tablet.latest(Match.self)?.score == 1)
        try await waiting { shown.current.contains(.upToDate) }

        tabletSync.stop()
        try await waiting { tabletSync.currentStatus == .offline }
        try tablet.save(Match(score: 2))
        match.score = 3
        match.timestamp = Date()
        try store.save(match)
        try await sync.waitUntilSynced()
        tabletSync.start()
        try await tabletSync.waitUntilSynced()

        let told = Shared<[SyncEvent]>([])
        func tellPlayer(_ text: String) { told.change { _ in } }
        func offer(_ kept: Match?, insteadOf shown: Match?, _ version: SyncVersion) {}
        let hearing = Task {
            let (store, sync) = (tablet, tabletSync)
            // snippet
            for await event in sync.events {
                switch event {
                case .conflict(let conflict) where conflict.collection == Match.collection:
                    guard let loser = conflict.loser else { continue }
                    let kept = try store.object(Match.self, in: loser)
                    let shown = try store.object(Match.self, id: conflict.id)
                    offer(kept, insteadOf: shown, loser)
                case .conflict: break
                case .refused(let refusal): tellPlayer("The server does not take this game: \(refusal.error)")
                case .signedOut(let reason): tellPlayer("This device is signed out: \(reason)")
                }
                // hide
                told.change { $0.append(event) }
                // show
            }
            // end
        }
        try await waiting { !told.current.isEmpty }
        hearing.cancel()
        guard case .conflict(let conflict)? = told.current.first else {
            Issue.record("no conflict, but \(told.current)")
            return
        }
        // The tablet's save was the earlier one.
        #expect(!conflict.hasMineWon)
        #expect(try tablet.object(Match.self, in: try #require(conflict.loser))?.score == 2)
        #expect(try tablet.latest(Match.self)?.score == 3)
        #expect(throws: StoreError.self) { try tablet.object(Other.self, in: conflict.mine) }

        // snippet
        let versions = try await sync.versions(ofGame: match.id, in: Match.collection)
        for version in versions { print(version.revision, version.outcome, version.saved, version.isHead) }
        if let loser = versions.first(where: { $0.outcome == "lost" }) {
            try await sync.restore(loser)
        }
        // end
        #expect(versions.count == 3)
        #expect(try store.latest(Match.self)?.score == 2)
        try await sync.waitUntilSynced()
        try await tabletSync.waitUntilSynced()
        #expect(try tablet.latest(Match.self)?.score == 2)

        // snippet
        let version = try await sync.version(1, ofGame: match.id, in: Match.collection)
        let first = try store.object(Match.self, in: version)
        // end
        #expect(first?.score == 1)

        // snippet
        sync.stop()
        sync.start()
        sync.retryNow()
        // end
        _ = daemon.stop()
    }

    struct Other: Persistable {
        static let collection = "my.other"
        var id = "1"
        var timestamp = Date()
    }

    private func waiting(until isReached: () throws -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while try !isReached() {
            try #require(ContinuousClock.now < deadline)
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    @Test("games that are given to a new player")
    func givenGames() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let server = "127.0.0.1:\(daemon.port)"
        let store = try GameStore.inMemory()
        do {
            let token = try await SyncEngine.register(at: server, deviceName: "phone")
            try store.save(Match(score: 1))
            try await SyncEngine(store: store, server: server, token: token).waitUntilSynced()
        }
        // snippet
        let token = try await SyncEngine.register(at: server, deviceName: "phone")
        try store.giveGames(toPlayerOf: token)
        let sync = try SyncEngine(store: store, server: server, token: token)
        // end
        try await within(60, "all is synced") { try await sync.waitUntilSynced() }
        #expect(try sync.state(ofGame: "today", in: Match.collection) == .synced)
    }

    @Test("devices that are listed, renamed and revoked, and a player who is invited")
    func devices() async throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo, options: ["--registration", "invite"])
        let server = "127.0.0.1:\(daemon.port)"
        let invite = try Programs.run("ieumd", ["invite", "--database", database.conninfo]).output.trimmingCharacters(
            in: .newlines)

        // snippet
        let token = try await SyncEngine.register(at: server, deviceName: "phone", invite: invite)
        // end
        let sync = try SyncEngine(store: GameStore.inMemory(), server: server, token: token)
        _ = try await SyncEngine.link(at: server, code: sync.pairingCode(), deviceName: "lost tablet")
        let shown = Shared<[String]>([])
        func show(_ text: String) { shown.change { $0.append(text) } }

        // snippet
        for device in try await sync.devices() {
            show(device.name)
            if device.isThisDevice { try await sync.rename(device, to: "my phone") }
            if device.name == "lost tablet" { try await sync.revoke(device) }
        }
        // end
        #expect(shown.current == ["lost tablet", "phone"])
        let devices = try await sync.devices()
        #expect(devices.map(\.name) == ["my phone", "lost tablet"])
        #expect(devices.map { $0.revoked == nil } == [true, false])
    }
}
