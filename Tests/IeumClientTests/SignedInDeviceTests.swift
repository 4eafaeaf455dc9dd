import Foundation
import Synchronization
import Testing
import Wire

@testable import IeumClient

@Suite("A signed-in device")
struct SignedInDeviceTests {
    private let folder: TemporaryFolder
    private let key: GameKey
    private let state = Array("{\"answer\":\"사람\"}".utf8)
    private let hello: [Peer.Step] = [.say(Said.greeting()), .hear("LOGIN"), .say(Said.signIn(revision: 9))]

    init() throws {
        folder = try TemporaryFolder()
        key = try GameKey(collection: "handle.game", id: "today")
    }

    private func pushes(_ peer: Peer) -> [String] {
        peer.heard.flatMap { $0 }.filter { $0.hasPrefix("PUSH") }
    }

    private func option(_ name: String, of line: String) -> String? {
        line.split(separator: " ").first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
    }

    @Test("cut off at any byte of a push's answer, it sends the same push once more and takes that answer")
    func cutAnywhere() throws {
        let answer = Said.receipt(.created, 10)
        for cut in 0..<answer.count {
            let folder = try TemporaryFolder()
            let peer = Peer(
                hello + [.hear("PUSH"), .say(Array(answer.prefix(cut))), .close],
                hello + [.hear("PUSH"), .say(Said.receipt(.repeated, first: .created, 10))])
            let home = try folder.home(at: peer.address)
            let device = try SignedInDevice(home: home)
            var reasons: [ClientError] = []
            let (push, receipt) = try device.push(.init(game: key, state: state)) { reasons.append($0) }
            #expect(receipt.outcome == .repeated)
            #expect(reasons == [.connectionClosed(nil)])
            let lines = pushes(peer)
            #expect(lines.count == 2, "cut at \(cut)")
            #expect(Set(lines).count == 1, "cut at \(cut)")
            #expect(option("saved", of: lines.first ?? "") == push.saved?.description)
            #expect(option("base", of: lines.first ?? "") == "0")
            #expect(try home.seen().base(for: key) == 10)
        }
    }

    @Test("without an answer to the second try either, the next call of the same push has the same time")
    func unanswered() throws {
        let peer = Peer(
            hello + [.hear("PUSH"), .close], hello + [.hear("PUSH"), .close],
            hello + [.hear("PUSH"), .say(Said.receipt(.created, 10)), .hear("PUSH"), .say(Said.receipt(.advanced, 11))])
        let home = try folder.home(at: peer.address)
        #expect(throws: ClientError.connectionClosed(nil)) {
            try SignedInDevice(home: home).push(.init(game: key, state: state))
        }
        let device = try SignedInDevice(home: home)
        _ = try device.push(.init(game: key, state: state))
        _ = try device.push(.init(game: key, state: state))
        let saved = pushes(peer).map { option("saved", of: $0) }
        try #require(saved.count == 4)
        #expect(Set(saved[..<3]).count == 1)
        // Answered by now: the same state again is another save.
        #expect(saved[3] != saved[2])
        #expect(option("base", of: pushes(peer)[3]) == "10")
    }

    @Test("a refused push is over; one that may have been stored all the same keeps its time")
    func refused() throws {
        let peer = Peer(
            hello + [
                .hear("PUSH"), .say("ERR invalid-json offset=1 \"no\"\n"), .hear("PUSH"),
                .say("ERR unavailable retry-after=1 \"no\"\n"), .hear("PUSH"), .say(Said.receipt(.created, 10)),
            ])
        let device = try SignedInDevice(home: folder.home(at: peer.address))
        for code in [WireError.Code.invalidJSON, .unavailable] {
            #expect {
                try device.push(.init(game: key, state: state))
            } throws: { error in
                guard case ClientError.server(let refusal) = error else { return false }
                return refusal.code == code
            }
        }
        _ = try device.push(.init(game: key, state: state))
        let saved = pushes(peer).map { option("saved", of: $0) }
        #expect(saved[0] != saved[1])
        #expect(saved[1] == saved[2])
    }

    @Test("pushes with the head that it was given last as base, and with nothing that it was only told of")
    func bases() throws {
        let head = PushReceipt.Head(
            revision: 11, saved: .latest, stamp: .latest.advanced(byMicroseconds: -5), device: Said.token.device,
            schema: 0,
            state: Array("{}".utf8))
        let peer = Peer(
            hello + [
                .hear("PUSH"), .say(Said.receipt(.created, 10)), .hear("PUSH"),
                .say(Said.receipt(.lost, 12, rival: 11, head: head)),
                .hear("PUSH"), .say(Said.receipt(.lost, 13, rival: 11, head: head)), .hear("GET"),
                .say(Said.game(key, 11, "{}")), .say("END\n"), .hear("PUSH"), .say(Said.receipt(.advanced, 14)),
                .hear("GET"), .say(Said.game(key, 12, "{}")), .say("END\n"), .hear("PUSH"),
                .say(Said.receipt(.won, 15, rival: 14)),
                .hear("PUSH"), .say(Said.receipt(.advanced, 16)), .hear("PUSH"), .say(Said.receipt(.won, 17)),
                .hear("DELETE"),
                .say(Said.receipt(.advanced, 18)),
            ])
        let device = try SignedInDevice(home: folder.home(at: peer.address))
        let draft = SignedInDevice.Draft(game: key, state: state)
        #expect(try device.push(draft).receipt.outcome == .created)
        #expect(try device.push(draft).receipt.head == head)
        let afterLoss = try device.push(draft)
        // Later than the head's stamp, so that it wins as soon as the player has seen the head.
        #expect(afterLoss.push.saved == head.stamp.advanced(byMicroseconds: 1))
        _ = try device.get(key)
        _ = try device.push(draft)
        // An old version is looked at, not carried on.
        _ = try device.get(key, revision: 12)
        _ = try device.push(draft)
        var chosen = draft
        chosen.base = .revision(3)
        _ = try device.push(chosen)
        chosen.base = .none
        _ = try device.push(chosen)
        _ = try device.push(.init(game: key, state: nil))
        let bases = peer.heard.flatMap { $0 }.filter { $0.hasPrefix("PUSH") || $0.hasPrefix("DELETE") }
            .map { option("base", of: $0) }
        #expect(bases == ["0", "10", "10", "11", "14", "3", nil, "17"])
    }

    @Test("after a restore it claims no base for games seen before, and starts its cursor over")
    func newEpoch() throws {
        let restored: [Peer.Step] = [.say(Said.greeting(epoch: Said.otherEpoch)), .hear("LOGIN"), .say(Said.signIn())]
        let peer = Peer(
            hello + [
                .hear("PUSH"), .say(Said.receipt(.created, 10)), .hear("PULL"), .say("END cursor=10 more=false\n"),
            ],
            restored + [.hear("PUSH"), .say(Said.receipt(.created, 1))], restored)
        let home = try folder.home(at: peer.address)
        let before = try SignedInDevice(home: home)
        _ = try before.push(.init(game: key, state: state))
        _ = try before.pull(since: nil, givesStates: false) { _ in }
        #expect(!before.isEpochNew)
        #expect(try home.seen().cursor == 10)
        let after = try SignedInDevice(home: home)
        #expect(after.isEpochNew)
        #expect(try home.seen().cursor == 0)
        _ = try after.push(.init(game: key, state: state))
        #expect(option("base", of: pushes(peer)[1]) == nil)
        #expect(try !SignedInDevice(home: home).isEpochNew)
    }

    @Test("pulls page by page to the end, and remembers a page only after it was handed out")
    func pulls() throws {
        struct Full: Error {}
        let first: [Peer.Step] = [
            .hear("PULL"), .say(Said.game(key, 3, "{}")), .say("END cursor=3 more=true\n"),
        ]
        let second: [Peer.Step] = [.hear("PULL"), .say(Said.game(key, 5, nil)), .say("END cursor=6 more=false\n")]
        let peer = Peer(hello + first + second, hello + second)
        let home = try folder.home(at: peer.address)
        var count = 0
        #expect(throws: Full.self) {
            try SignedInDevice(home: home).pull(since: nil, givesStates: true) { _ in
                count += 1
                if count == 2 { throw Full() }
            }
        }
        #expect(try home.seen().cursor == 3)
        #expect(try home.seen().base(for: key) == 3)
        var games: [GameVersion] = []
        let result = try SignedInDevice(home: home).pull(since: nil, givesStates: true) { games += $0 }
        #expect(result.cursor == 6)
        #expect(games.map(\.header.revision) == [5])
        let pulls = peer.heard.flatMap { $0 }.filter { $0.hasPrefix("PULL") }
        #expect(pulls == ["PULL since=0 limit=100", "PULL since=3 limit=100", "PULL since=3 limit=100"])
    }

    @Test("a pull from further on leaves the cursor, one without states only sees deletions")
    func partialPulls() throws {
        let other = try GameKey(collection: "handle.game", id: "other")
        let peer = Peer(
            hello + [
                .hear("PULL"), .say("END cursor=9 more=false\n"), .hear("PULL"), .say(Said.game(key, 3, "{}")),
                .say(Said.game(other, 4, nil)), .say("END cursor=9 more=false\n"),
            ])
        let home = try folder.home(at: peer.address)
        let device = try SignedInDevice(home: home)
        _ = try device.pull(since: 5, givesStates: false) { _ in }
        #expect(try home.seen().cursor == 0)
        _ = try device.pull(since: nil, givesStates: false) { _ in }
        #expect(try home.seen().cursor == 9)
        #expect(try home.seen().base(for: key) == 0)
        #expect(try home.seen().base(for: other) == 4)
    }

    @Test("a cursor beyond the server's last starts over, but not one that was given")
    func cursorAhead() throws {
        let peer = Peer(
            hello + [
                .hear("PULL"), .say("END cursor=9 more=false\n"), .hear("PULL"),
                .say("ERR cursor-ahead revision=3 \"the last revision is 3\"\n"), .hear("PULL"),
                .say(Said.game(key, 3, "{}")), .say("END cursor=3 more=false\n"), .hear("PULL"),
                .say("ERR cursor-ahead revision=3 \"the last revision is 3\"\n"),
            ])
        let home = try folder.home(at: peer.address)
        let device = try SignedInDevice(home: home)
        _ = try device.pull(since: nil, givesStates: false) { _ in }
        var startedOver = 0
        let result = try device.pull(since: nil, givesStates: false, startingOver: { startedOver += 1 }) { _ in }
        #expect(startedOver == 1)
        #expect(result.games == 1)
        #expect(try home.seen().cursor == 3)
        #expect(throws: ClientError.self) { try device.pull(since: 9, givesStates: false) { _ in } }
    }

    @Test("names are brought into normal form C before they go out")
    func normalizes() throws {
        let key = try GameKey(normalizing: "c", "\u{1112}\u{1161}\u{11AB}")
        #expect(Array(key.id.unicodeScalars) == ["\u{D55C}"])
    }
}

@Suite("Watching for changes")
struct ChangeWatchTests {
    private let folder: TemporaryFolder
    private let key: GameKey
    private let hello: [Peer.Step] = [.say(Said.greeting()), .hear("LOGIN"), .say(Said.signIn(revision: 9))]

    init() throws {
        folder = try TemporaryFolder()
        key = try GameKey(collection: "handle.game", id: "today")
    }

    private func page(_ revision: Revision) -> [Peer.Step] {
        [
            .say("* CHANGED revision=\(revision)\n"), .hear("PULL"), .say(Said.game(key, revision, "{}")),
            .say("END cursor=\(revision) more=false\n"),
        ]
    }

    @Test("goes on where it was after the connection broke, and shows no change twice")
    func reconnects() throws {
        let peer = Peer(
            hello + [.hear("WATCH"), .say("OK revision=4\n")] + page(4) + [.close],
            [.close], hello + [.hear("WATCH"), .say("OK revision=4\n")] + page(6))
        struct Enough: Error {}
        let home = try folder.home(at: peer.address)
        let watch = ChangeWatch(home: home, backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(2)))
        var revisions: [Revision] = []
        var events: [ChangeWatch.Event] = []
        #expect(throws: Enough.self) {
            try watch.run(tell: { events.append($0) }) {
                revisions += $0.map(\.header.revision)
                if revisions.count == 2 { throw Enough() }
            }
        }
        #expect(revisions == [4, 6])
        let watches = peer.heard.flatMap { $0 }.filter { $0.hasPrefix("WATCH") }
        #expect(watches == ["WATCH since=0", "WATCH since=4"])
        #expect(events.count { if case .interrupted = $0 { true } else { false } } == 2)
        // What it showed, a pull brings too.
        #expect(try home.seen().cursor == 0)
        #expect(try home.seen().base(for: key) == 0)
    }

    @Test("ends after the first change, or when its time is over")
    func ends() throws {
        let peer = Peer(
            hello + [.hear("WATCH"), .say("OK revision=9\n")] + page(10),
            hello + [.hear("WATCH"), .say("OK revision=9\n")])
        let home = try folder.home(at: peer.address)
        #expect(try ChangeWatch(home: home, since: 9, isOnce: true).run(tell: { _ in }) { _ in } == .changed)
        let deadline = ContinuousClock.now + .milliseconds(50)
        #expect(try ChangeWatch(home: home, since: 9, deadline: deadline).run(tell: { _ in }) { _ in } == .timedOut)
        #expect(.now >= deadline)
    }

    @Test("finds a connection dead that says nothing any more")
    func heartbeat() throws {
        let quiet: [Peer.Step] = hello + [.hear("WATCH"), .say("OK revision=9\n"), .hear("never")]
        let peer = Peer(quiet, hello + [.hear("WATCH"), .say("OK revision=9\n")] + page(10))
        let watch = ChangeWatch(
            home: try folder.home(at: peer.address), isOnce: true,
            patience: .init(connecting: .seconds(5), answer: .milliseconds(50)), heartbeat: .milliseconds(20),
            backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(2)))
        #expect(try watch.run(tell: { _ in }) { _ in } == .changed)
        #expect(peer.heard[0].contains("PING"))
    }

    @Test("stops at a refusal that no retry mends")
    func revoked() throws {
        let peer = Peer([
            .say(Said.greeting()), .hear("LOGIN"), .say("ERR device-revoked \"this device was revoked\"\n"),
        ])
        let watch = ChangeWatch(home: try folder.home(at: peer.address))
        #expect(throws: ClientError.server(WireError(.deviceRevoked, "this device was revoked"))) {
            try watch.run(tell: { _ in }) { _ in }
        }
        #expect(peer.heard.count == 1)
    }

    @Test("starts over when the server was restored")
    func restored() throws {
        let peer = Peer(
            hello + [.hear("PULL"), .say("END cursor=9 more=false\n")],
            [
                .say(Said.greeting(epoch: Said.otherEpoch)), .hear("LOGIN"), .say(Said.signIn()), .hear("WATCH"),
                .say("OK revision=0\n"),
            ]
                + page(1))
        let home = try folder.home(at: peer.address)
        _ = try SignedInDevice(home: home).pull(since: nil, givesStates: false) { _ in }
        var events: [ChangeWatch.Event] = []
        #expect(try ChangeWatch(home: home, isOnce: true).run(tell: { events.append($0) }) { _ in } == .changed)
        #expect(events == [.startedOver, .watching(since: 0)])
    }
}
