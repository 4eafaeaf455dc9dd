import Foundation
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("Games of another player")
struct GivenGamesTests {
    private final class Owner: Sendable {}
    private let store: GameStore
    private let first: Token
    private let second: Token

    init() throws {
        store = try GameStore.inMemory()
        first = try Self.token()
        second = try Self.token()
        _ = try meet(first)
    }

    private static func token() throws -> Token {
        try #require(Token(player: PlayerID(UUID()), device: DeviceID(UUID()), secret: Array(repeating: 7, count: 32)))
    }

    private func meet(_ token: Token) throws -> SyncPoint {
        try store.meet(
            SignIn(player: token.player, device: token.device, revision: 0), epoch: UUID(), clockOffset: 0,
            offersRefused: true)
    }

    private func acknowledgeAll() throws {
        var revision: Int64 = 0
        for push in try store.takeOutgoing(limit: 100, bytes: 1 << 20) {
            revision += 1
            let stamp = try #require(push.saved)
            _ = try store.acknowledge([
                PushAnswer(push: push, receipt: PushReceipt(outcome: .created, revision: revision, stamp: stamp))
            ])
        }
    }

    @Test("are not given by a log-in, whatever is tried")
    func neverImplicit() throws {
        try store.save(WordGame(id: "1", answer: "사람"))
        #expect(throws: SyncStorageError.self) { try meet(second) }
        #expect(try store.takeOutgoing(limit: 10, bytes: 1 << 20).count == 1)
        _ = try meet(first)
    }

    @Test("are given when that is asked for: all of them from cursor 0, without a base, deletions aside; once")
    func given() throws {
        try store.save((1...3).map { WordGame(id: "\($0)", answer: "사람") })
        try acknowledgeAll()
        #expect(try store.syncPoint().cursor == 3)
        try store.delete(WordGame.self, id: "3")
        try store.save(WordGame(id: "2", answer: "구름"))
        _ = try store.takeOutgoing(limit: 1, bytes: 1)
        #expect(try store.giveGames(toPlayerOf: second.text))
        #expect(throws: SyncStorageError.self) { try meet(first) }
        let point = try meet(second)
        #expect(point.cursor == 0 && point.waiting == 2 && point.unanswered == 0)
        let pushes = try store.takeOutgoing(limit: 10, bytes: 1 << 20)
        #expect(pushes.map(\.game.id).sorted() == ["1", "2"])
        #expect(pushes.allSatisfy { $0.base == nil && $0.state != nil })
        // The deletion is not that player's: what the account has is shown.
        let time = Timestamp(clamping: 5)
        let head = GameVersion(
            game: try GameKey(collection: WordGame.collection, id: "3"),
            header: GameHeader(revision: 1, saved: time, stamp: time, device: DeviceID(UUID()), schema: 0),
            state: try StateCoder.encode(WordGame(id: "3", answer: "theirs")))
        _ = try store.apply(ChangePage(games: [head], cursor: 1, hasMore: false), since: 0)
        #expect(try store.object(WordGame.self, id: "3")?.answer == "theirs")
        #expect(try !store.giveGames(toPlayerOf: second.text))
        #expect(try store.syncPoint().cursor == 1)
    }

    @Test("are not given while an engine works on the store, nor by what is no token")
    func refused() throws {
        let owner = Owner()
        try store.save(WordGame(id: "1", answer: "사람"))
        #expect(throws: SyncError.invalidToken) { try store.giveGames(toPlayerOf: "x") }
        store.whenSaved(for: owner) {}
        #expect(#expect(throws: StoreError.self) { try store.giveGames(toPlayerOf: second.text) }?.kind == .misuse)
        // An engine that goes takes only its own away.
        store.whenSaved(for: Owner(), nil)
        #expect(throws: StoreError.self) { try store.giveGames(toPlayerOf: second.text) }
        store.whenSaved(for: owner, nil)
        #expect(try store.giveGames(toPlayerOf: second.text))
    }

    @Test("that were refused are offered again when that is asked for, and told once more, not twice")
    func refusedAgain() throws {
        try store.save(WordGame(id: "1", answer: "사람"))
        for round in 0..<3 {
            let push = try #require(try store.takeOutgoing(limit: 1, bytes: 1 << 20).first)
            _ = try store.refuse(push, .stateTooLarge(limit: 10))
            #expect(try store.takeOutgoing(limit: 1, bytes: 1 << 20).isEmpty)
            let events = try store.events(limit: 10)
            #expect(events.count == 1)
            if round == 1 { try store.removeEvent(try #require(events.first).id) }
            _ = try store.meet(
                SignIn(player: first.player, device: first.device, revision: 0), epoch: UUID(), clockOffset: 0,
                offersRefused: false)
            #expect(try store.takeOutgoing(limit: 1, bytes: 1 << 20).isEmpty)
            _ = try meet(first)
        }
        try acknowledgeAll()
        #expect(try store.heldGame(GameKey(collection: WordGame.collection, id: "1"))?.standing == .synced)
    }

    @Test("saved by a clock that is before 1970 are in order, sent, and found")
    func clockBefore1970() throws {
        let store = try GameStore(path: ":memory:", schemaVersion: 0, clock: { Timestamp(clamping: -1_000_000_000) })
        let early = Date(timeIntervalSince1970: -86_400.5)
        for row in 1...3 { try store.save(WordGame(id: "1", timestamp: early, answer: "사람", currentRow: row)) }
        try store.save(WordGame(id: "2", timestamp: early.addingTimeInterval(-1), answer: "구름"))
        #expect(try store.latest(WordGame.self)?.currentRow == 3)
        #expect(try store.object(WordGame.self, id: "1")?.timestamp == early)
        let offset: Int64 = 1_790_000_000_000_000
        _ = try store.meet(
            SignIn(player: first.player, device: first.device, revision: 0), epoch: UUID(), clockOffset: offset,
            offersRefused: false)
        let pushes = try store.takeOutgoing(limit: 10, bytes: 1 << 20)
        #expect(pushes.count == 2)
        #expect(pushes.allSatisfy { $0.saved.map { $0.microseconds >= offset } == true })
        try store.save(WordGame(id: "1", timestamp: early, answer: "사람", currentRow: 4))
        let held = try #require(try store.heldGame(GameKey(collection: WordGame.collection, id: "1")))
        #expect(held.sending != nil && held.saved > (held.sending?.saved ?? .latest))
        #expect(Timestamp.now.microseconds > 0)
    }
}
