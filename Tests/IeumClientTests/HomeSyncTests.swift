import Foundation
import Testing
import Wire

@testable import IeumClient

@Suite("A home that is brought up to date")
struct HomeSyncTests {
    private let folder: TemporaryFolder
    private let key: GameKey

    init() throws {
        folder = try TemporaryFolder()
        key = try GameKey(collection: "handle.game", id: "today")
    }

    private func hello(_ revision: Revision, epoch: UUID = Said.epoch) -> [Peer.Step] {
        [.say(Said.greeting(epoch: epoch)), .hear("LOGIN"), .say(Said.signIn(revision: revision))]
    }

    private func page(_ games: [UInt8]..., cursor: Revision, more: Bool = false) -> [Peer.Step] {
        [.hear("PULL"), .say(games.flatMap { $0 }), .say("END cursor=\(cursor) more=\(more)\n")]
    }

    private func watching(_ revision: Revision) -> [Peer.Step] {
        [.hear("WATCH"), .say("OK revision=\(revision)\n")]
    }

    private func game(_ index: Int) throws -> GameKey { try GameKey(collection: "c", id: "g\(index)") }

    private func games(_ range: ClosedRange<Int>) throws -> [UInt8] {
        try range.flatMap { Said.game(try game($0), Revision($0), "{\"n\":\($0)}") }
    }

    private func revisions(_ sync: HomeSync, since: Revision? = nil) throws -> [Revision] {
        var revisions: [Revision] = []
        _ = try sync.handOut(since: since, givesStates: true) { revisions += $0.map(\.header.revision) }
        return revisions
    }

    private func said(_ peer: Peer, _ verb: String) -> [String] {
        peer.heard.flatMap { $0 }.filter { $0.hasPrefix(verb) }
    }

    private func upToDate(_ home: DeviceHome) throws -> HomeSync {
        let sync = try HomeSync(home: home)
        try sync.bringUpToDate()
        return sync
    }

    @Test("is handed out page by page to the end, and a page is remembered only after it was handed out")
    func pages() throws {
        struct Full: Error {}
        let peer = Peer(
            hello(250) + page(try games(1...120), cursor: 120, more: true) + page(try games(121...250), cursor: 250)
                + watching(250),
            hello(250) + page(cursor: 250) + watching(250))
        let home = try folder.home(at: peer.address)
        var counts: [Int] = []
        #expect(throws: Full.self) {
            _ = try upToDate(home).handOut(since: nil, givesStates: true) { games in
                counts.append(games.count)
                if counts.count == 2 { throw Full() }
            }
        }
        #expect(counts == [100, 100])
        #expect(try home.seen().cursor == 100)
        #expect(try home.seen().base(for: game(100)) == 100)
        #expect(try home.seen().base(for: game(101)) == 0)
        let sync = try upToDate(home)
        #expect(try revisions(sync) == Array(101...250))
        #expect(try home.seen().cursor == 250)
        #expect(try revisions(sync).isEmpty)
        #expect(said(peer, "PULL").last == "PULL since=250 limit=500")
    }

    @Test("ends where a page is full to its end, and begins behind it", arguments: [99, 100, 101, 200])
    func boundary(count: Int) throws {
        let last = Revision(count)
        let peer = Peer(hello(last) + page(try games(1...count), cursor: last) + watching(last))
        let home = try folder.home(at: peer.address)
        var counts: [Int] = []
        let result = try upToDate(home).handOut(since: nil, givesStates: true) { counts.append($0.count) }
        #expect(counts == (count > 100 ? [100, count - 100] : [count]))
        #expect(result.cursor == last && result.games == count)
        #expect(try home.seen().cursor == last)
    }

    @Test("gives the states byte for byte, with all that the server said of them, deletions too")
    func exact() throws {
        let state = #"{ "answer":"사람" ,"x":1e2,"x":2,"y":9007199254740993}"#
        let other = try game(1)
        let header = GameHeader(
            revision: 4, saved: Said.stamp, stamp: Said.stamp.advanced(byMicroseconds: 7), device: DeviceID(UUID()),
            schema: 3)
        let version = GameVersion(game: key, header: header, state: Array(state.utf8))
        let peer = Peer(
            hello(5) + page(Said.line { version.print(into: &$0) }, Said.game(other, 5, nil), cursor: 5) + watching(5))
        let sync = try upToDate(try folder.home(at: peer.address))
        var games: [GameVersion] = []
        _ = try sync.handOut(since: nil, givesStates: true) { games += $0 }
        #expect(games.first == version)
        #expect(games.last?.game == other && games.last?.state == nil && games.count == 2)
    }

    @Test("a start from further on leaves the place, and without states only deletions count as seen")
    func partial() throws {
        let other = try game(1)
        let peer = Peer(
            hello(9) + page(Said.game(key, 3, "{}"), Said.game(other, 4, nil), cursor: 9) + watching(9))
        let home = try folder.home(at: peer.address)
        let sync = try upToDate(home)
        #expect(try revisions(sync, since: 3) == [4])
        #expect(try home.seen().cursor == 0)
        _ = try sync.handOut(since: nil, givesStates: false) { _ in }
        #expect(try home.seen().cursor == 9)
        #expect(try home.seen().base(for: key) == 0)
        #expect(try home.seen().base(for: other) == 4)
    }

    @Test("a home of an older version, which has no store, goes on from where it was")
    func olderHome() throws {
        let peer = Peer(hello(6) + page(try games(1...6), cursor: 6) + watching(6))
        let home = try folder.home(at: peer.address)
        try home.updateSeen { seen in
            seen.meet(epoch: Said.epoch)
            seen.saw(key, revision: 2, stamp: Said.stamp)
            seen.pulled(upTo: 4)
        }
        let sync = try upToDate(home)
        #expect(try revisions(sync) == [5, 6])
        #expect(try sync.store.copyState().games == 6)
        #expect(try home.seen().base(for: key) == 2)
        #expect(said(peer, "PULL") == ["PULL since=0 limit=500"])
    }

    @Test("a remembered place beyond the server's last starts over, but not one that was given")
    func cursorAhead() throws {
        let refusal: [Peer.Step] = [.hear("PULL"), .say("ERR cursor-ahead revision=3 \"the last revision is 3\"\n")]
        let peer = Peer(
            hello(9) + page(cursor: 9) + watching(9),
            hello(3) + refusal + page(Said.game(key, 3, "{}"), cursor: 3) + watching(3))
        let home = try folder.home(at: peer.address)
        _ = try upToDate(home).handOut(since: nil, givesStates: false) { _ in }
        #expect(try home.seen().cursor == 9)
        let sync = try upToDate(home)
        var restarts: [HomeSync.Restart] = []
        let result = try sync.handOut(since: nil, givesStates: false, restarting: { restarts.append($0) }) { _ in }
        #expect(restarts == [.cursorAhead])
        #expect(result.games == 1)
        #expect(try home.seen().cursor == 3)
        #expect(throws: ClientError.server(.cursorAhead(revision: 3))) {
            try sync.handOut(since: 9, givesStates: false) { _ in }
        }
    }

    @Test("in a new epoch it says so once, and all is handed out anew")
    func newEpoch() throws {
        let peer = Peer(
            hello(4) + page(Said.game(key, 4, "{}"), cursor: 4) + watching(4),
            hello(2, epoch: Said.otherEpoch) + page(Said.game(key, 2, "{}"), cursor: 2) + watching(2))
        let home = try folder.home(at: peer.address)
        #expect(try revisions(upToDate(home)) == [4])
        let sync = try upToDate(home)
        var restarts: [HomeSync.Restart] = []
        var games: [GameVersion] = []
        for _ in 0..<2 {
            _ = try sync.handOut(since: nil, givesStates: true, restarting: { restarts.append($0) }) { games += $0 }
        }
        #expect(restarts == [.newEpoch])
        #expect(games.map(\.header.revision) == [2])
        #expect(try home.seen().base(for: key) == 2)
        #expect(try home.seen().epoch == Said.otherEpoch)
    }

    @Test("what another save took the place of here comes from the server")
    func replaced() throws {
        let peer = Peer(
            hello(5) + page(Said.game(key, 5, "{\"n\":1}"), cursor: 5) + watching(5),
            hello(5) + page(cursor: 5) + watching(5) + [
                .hear("PUSH"), .say("ERR invalid-json offset=1 \"no\"\n"), .hear("GET"),
                .say(Said.game(key, 5, "{\"n\":1}")), .say("END\n"),
            ])
        let home = try folder.home(at: peer.address)
        _ = try upToDate(home)
        let store = try home.openStore(of: home.identity())
        try store.restore(key, state: Array("{\"n\":2}".utf8), schema: 0)
        let sync = try upToDate(home)
        #expect(try sync.store.copyState().refused == 1)
        #expect(try sync.events().count == 1)
        var games: [GameVersion] = []
        _ = try sync.handOut(since: nil, givesStates: true) { games += $0 }
        #expect(games.map(\.state) == [Array("{\"n\":1}".utf8)])
        #expect(said(peer, "GET") == ["GET handle.game today revision=5"])
    }

    @Test("what came while a save that the server does not take was in its place is handed out")
    func unseen() throws {
        let peer = Peer(
            hello(5) + page(Said.game(key, 5, "{\"n\":1}"), Said.game(try game(6), 6, "6"), cursor: 6) + watching(6) + [
                .hear("PUSH"), .say("ERR invalid-json offset=1 \"no\"\n"),
            ])
        let home = try folder.home(at: peer.address)
        try home.openStore(of: home.identity()).restore(key, state: Array("{\"n\":2}".utf8), schema: 0)
        let sync = try upToDate(home)
        #expect(try sync.sentGames() == 0)
        var games: [GameVersion] = []
        _ = try sync.handOut(since: nil, givesStates: true) { games += $0 }
        #expect(games.map(\.header.revision) == [5, 6])
        #expect(games.first?.state == Array("{\"n\":1}".utf8))
        #expect(try sync.store.heldGame(key)?.state == Array("{\"n\":2}".utf8))
    }

    @Test("a save that lost is told of, and the head is handed out with its own stamp")
    func lost() throws {
        let head = PushReceipt.Head(
            revision: 5, saved: Said.stamp, stamp: Said.stamp.advanced(byMicroseconds: -5), device: DeviceID(UUID()),
            schema: 2, state: Array("{\"n\":1}".utf8))
        let version = GameVersion(key, head)
        let peer = Peer(
            hello(5) + page(Said.line { version.print(into: &$0) }, cursor: 5) + watching(5) + [
                .hear("PUSH"), .say(Said.receipt(.lost, 6, rival: 5, head: head)),
            ])
        let home = try folder.home(at: peer.address)
        try home.openStore(of: home.identity()).restore(key, state: Array("{\"n\":2}".utf8), schema: 0)
        let sync = try upToDate(home)
        #expect(sync.start.unsent == 1)
        #expect(try sync.store.copyState().unsent == 0)
        #expect(try sync.sentGames() == 1)
        var games: [GameVersion] = []
        _ = try sync.handOut(since: nil, givesStates: true) { games += $0 }
        #expect(games == [version])
        guard case .conflict(let conflict)? = try sync.events().first?.kind else {
            Issue.record("the conflict is not told")
            return
        }
        #expect(conflict.outcome == .lost && conflict.mine.header.revision == 6)
    }

    @Test("the first trouble ends it, with the server's own words")
    func trouble() throws {
        let revoked = WireError(.deviceRevoked, "this device was revoked")
        let cases: [(steps: [Peer.Step], error: ClientError)] = [
            ([.close], .connectionClosed(nil)), ([.say("HTTP/1.1 400\n")], .protocolViolation("")),
            (
                [.say(Said.greeting()), .hear("LOGIN"), .say("ERR device-revoked \"this device was revoked\"\n")],
                .server(revoked)
            ),
            (
                hello(5) + [.hear("PULL"), .say("ERR busy retry-after=1 \"no\"\n")],
                .server(WireError(.busy, "no", retryAfter: .seconds(1)))
            ),
            (hello(5) + [.hear("PULL"), .close], .connectionClosed(nil)),
        ]
        for (steps, expected) in cases {
            let folder = try TemporaryFolder()
            let peer = Peer(steps)
            #expect {
                try upToDate(try folder.home(at: peer.address))
            } throws: { error in
                if case .protocolViolation = expected, case .protocolViolation? = error as? ClientError { return true }
                return error as? ClientError == expected
            }
            #expect(peer.heard.count == 1)
        }
    }

    @Test("a server that is not there, or says nothing, ends it in the time that was given")
    func offline() throws {
        let peer = Peer([.hear("never")])
        let home = try folder.home(at: peer.address)
        let patience = ServerConnection.Patience(connecting: .milliseconds(50), answer: .milliseconds(50))
        #expect {
            try HomeSync(home: home, patience: patience).bringUpToDate()
        } throws: { error in
            if case .timedOut? = error as? ClientError { true } else { false }
        }
        let gone = try TemporaryFolder()
        let nobody = try gone.home(at: ServerAddress(host: "127.0.0.1", port: 1))
        #expect {
            try HomeSync(home: nobody).bringUpToDate()
        } throws: { error in
            if case .unreachable? = error as? ClientError { true } else { false }
        }
    }
}
