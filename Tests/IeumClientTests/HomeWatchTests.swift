import Foundation
import Testing
import Wire

@testable import IeumClient

@Suite("Watching for changes")
struct HomeWatchTests {
    private let folder: TemporaryFolder
    private let key: GameKey

    init() throws {
        folder = try TemporaryFolder()
        key = try GameKey(collection: "handle.game", id: "today")
    }

    private func hello(_ revision: Revision, epoch: UUID = Said.epoch) -> [Peer.Step] {
        [.say(Said.greeting(epoch: epoch)), .hear("LOGIN"), .say(Said.signIn(revision: revision))]
    }

    private func page(_ revision: Revision) -> [Peer.Step] {
        [.hear("PULL"), .say(Said.game(key, revision, "{}")), .say("END cursor=\(revision) more=false\n")]
    }

    private func nothing(_ revision: Revision) -> [Peer.Step] {
        [.hear("PULL"), .say("END cursor=\(revision) more=false\n")] + watching(revision)
    }

    private func watching(_ revision: Revision) -> [Peer.Step] {
        [.hear("WATCH"), .say("OK revision=\(revision)\n")]
    }

    private func changed(_ revision: Revision) -> [Peer.Step] {
        [.say("* CHANGED revision=\(revision)\n")] + page(revision)
    }

    private var quick: SyncSettings {
        var settings = SyncSettings()
        settings.backoff = Backoff(first: .milliseconds(1), limit: .milliseconds(2))
        return settings
    }

    @Test("goes on where it was after the connection broke, and shows no change twice")
    func reconnects() throws {
        let peer = Peer(
            hello(4) + page(4) + watching(4) + [.hear("PING"), .close], [.close], hello(6) + page(6) + watching(6))
        struct Enough: Error {}
        var settings = quick
        settings.heartbeat = .milliseconds(20)
        let home = try folder.home(at: peer.address)
        var revisions: [Revision] = []
        var events: [HomeSync.WatchEvent] = []
        #expect(throws: Enough.self) {
            _ = try HomeSync(home: home, settings: settings).watch(since: nil, tell: { events.append($0) }) {
                revisions += $0.map(\.header.revision)
                if revisions.count == 2 { throw Enough() }
            }
        }
        #expect(revisions == [4, 6])
        let pulls = peer.heard.flatMap { $0 }.filter { $0.hasPrefix("PULL") }
        #expect(pulls == ["PULL since=0 limit=500", "PULL since=4 limit=500"])
        #expect(events.first == .watching(since: 0) && events.last == .watching(since: 4))
        #expect(events.count { if case .interrupted = $0 { true } else { false } } == 2)
        // What it showed, a pull brings too.
        #expect(try home.seen().cursor == 0)
        #expect(try home.seen().base(for: key) == 0)
    }

    @Test("shows what a pull would bring, then what comes")
    func shows() throws {
        let other = try GameKey(collection: "handle.game", id: "other")
        let peer = Peer(
            hello(4) + page(4) + watching(4) + [
                .say("* CHANGED revision=5\n"), .hear("PULL"), .say(Said.game(other, 5, nil)),
                .say("END cursor=5 more=false\n"),
            ])
        var events: [String] = []
        struct Enough: Error {}
        #expect(throws: Enough.self) {
            _ = try HomeSync(home: try folder.home(at: peer.address)).watch(
                since: nil, tell: { events.append("\($0)") }
            ) {
                events += $0.map { "\($0.header.revision)" }
                if events.last == "5" { throw Enough() }
            }
        }
        #expect(events == ["watching(since: 0)", "4", "5"])
    }

    @Test("ends after the first change, or when its time is over")
    func ends() throws {
        let peer = Peer(hello(9) + nothing(9) + changed(10), hello(10) + nothing(10))
        let home = try folder.home(at: peer.address)
        #expect(try HomeSync(home: home).watch(since: 9, isOnce: true, tell: { _ in }) { _ in } == .changed)
        let deadline = ContinuousClock.now + .milliseconds(50)
        #expect(try HomeSync(home: home).watch(since: 10, deadline: deadline, tell: { _ in }) { _ in } == .timedOut)
        #expect(.now >= deadline)
    }

    @Test("finds a connection dead that says nothing any more")
    func heartbeat() throws {
        let peer = Peer(hello(9) + nothing(9) + [.hear("never")], hello(9) + nothing(9) + changed(10))
        var settings = quick
        settings.heartbeat = .milliseconds(20)
        // Longer than a machine stands still, or the second connection would be given up, too.
        settings.patience = .seconds(3)
        let sync = try HomeSync(home: try folder.home(at: peer.address), settings: settings)
        #expect(try sync.watch(since: nil, isOnce: true, tell: { _ in }) { _ in } == .changed)
        #expect(peer.heard[0].contains("PING"))
    }

    @Test("goes on when the server takes no more for a while, and sends what waits then")
    func rateLimited() throws {
        let peer = Peer(
            hello(4) + page(4) + watching(4) + [
                .hear("PUSH"), .say("ERR rate-limited retry-after=0.01 \"there are too many pushes of this player\"\n"),
                .hear("PUSH"), .say(Said.receipt(.created, 5)),
            ])
        let home = try folder.home(at: peer.address)
        let unsent = try GameKey(collection: "handle.game", id: "unsent")
        let store = try home.openStore(of: home.identity())
        try store.restore(unsent, state: Array("{\"n\":2}".utf8), schema: 0)
        struct Enough: Error {}
        var events: [HomeSync.WatchEvent] = []
        var games: [GameKey] = []
        #expect(throws: Enough.self) {
            _ = try HomeSync(home: home, settings: quick).watch(since: nil, tell: { events.append($0) }) {
                games += $0.map(\.game)
                if games.last == unsent { throw Enough() }
            }
        }
        #expect(games.last == unsent)
        let isTold = events.contains {
            if case .interrupted(.server(let error), _) = $0 { error.code == .rateLimited } else { false }
        }
        #expect(isTold)
        #expect(try store.copyState().unsent == 0)
    }

    @Test("stops at a refusal that no retry mends")
    func revoked() throws {
        let peer = Peer([
            .say(Said.greeting()), .hear("LOGIN"), .say("ERR device-revoked \"this device was revoked\"\n"),
        ])
        let sync = try HomeSync(home: try folder.home(at: peer.address))
        #expect(throws: ClientError.server(WireError(.deviceRevoked, "this device was revoked"))) {
            try sync.watch(since: nil, tell: { _ in }) { _ in }
        }
        #expect(peer.heard.count == 1)
    }

    @Test("a watch that never came about says why, although its time is over")
    func neverConnected() throws {
        let home = try folder.home(at: ServerAddress(host: "127.0.0.1", port: 1))
        #expect {
            try HomeSync(home: home, settings: SyncSettings()).watch(since: nil, deadline: .now, tell: { _ in }) { _ in
            }
        } throws: { error in
            if case .unreachable? = error as? ClientError { true } else { false }
        }
    }

    @Test("starts over when the server was restored")
    func restored() throws {
        let peer = Peer(
            hello(9) + nothing(9), hello(1, epoch: Said.otherEpoch) + page(1) + watching(1))
        let home = try folder.home(at: peer.address)
        let before = try HomeSync(home: home)
        try before.bringUpToDate()
        _ = try before.handOut(since: nil, givesStates: false) { _ in }
        var events: [HomeSync.WatchEvent] = []
        let end = try HomeSync(home: home).watch(since: nil, isOnce: true, tell: { events.append($0) }) { _ in }
        #expect(end == .changed)
        #expect(events == [.startedOver, .watching(since: 0)])
    }

    @Test("starts over at a cursor that the server does not know, but not at one that was given")
    func cursorAhead() throws {
        let peer = Peer(hello(3) + page(3) + watching(3))
        let home = try folder.home(at: peer.address)
        try home.updateSeen { $0.pulled(upTo: 9) }
        var events: [HomeSync.WatchEvent] = []
        let sync = try HomeSync(home: home)
        #expect(try sync.watch(since: nil, isOnce: true, tell: { events.append($0) }) { _ in } == .changed)
        #expect(events == [.startedOver, .watching(since: 0)])
        let given = Peer(hello(3) + page(3) + watching(3))
        let other = try TemporaryFolder()
        #expect(throws: ClientError.server(.cursorAhead(revision: 3))) {
            try HomeSync(home: try other.home(at: given.address)).watch(since: 9, tell: { _ in }) { _ in }
        }
    }
}
