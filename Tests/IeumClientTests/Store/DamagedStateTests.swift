import Foundation
import Synchronization
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("A state that is damaged")
struct DamagedStateTests {
    private final class Owner: Sendable {}
    private let store: GameStore
    private let own = DeviceID(UUID())
    private let player = PlayerID(UUID())
    private let owner = Owner()

    init() throws {
        store = try GameStore.inMemory()
        _ = try store.meet(
            SignIn(player: player, device: own, revision: 0), epoch: UUID(), clockOffset: 0, offersRefused: false)
    }

    private func version(_ id: String, _ answer: String, revision: Int64) throws -> GameVersion {
        let time = Timestamp(clamping: revision * 1_000)
        return GameVersion(
            game: try GameKey(collection: WordGame.collection, id: id),
            header: GameHeader(revision: revision, saved: time, stamp: time, device: DeviceID(UUID()), schema: 0),
            state: try StateCoder.encode(
                WordGame(id: id, timestamp: Date(timeIntervalSinceReferenceDate: 1), answer: answer)))
    }

    private func spoil(_ id: String) throws {
        try store.write {
            try $0.connection.run("UPDATE games SET state = ? WHERE id = ?", .bytes(Array("{\"id\":".utf8)), .text(id))
        }
    }

    @Test("of a game that the server has is kept aside, asked for, and replaced; all at one reading")
    func replaced() throws {
        let wakes = Mutex(0)
        let head = try version("1", "사람", revision: 1)
        _ = try store.apply(ChangePage(games: [head], cursor: 1, hasMore: false), since: 0)
        try spoil("1")
        store.whenSaved(for: owner) { wakes.withLock { $0 += 1 } }
        #expect(try store.syncPoint().hasErrands == false)
        for _ in 0..<3 {
            #expect(#expect(throws: StoreError.self) { try store.latest(WordGame.self) }?.kind == .invalidState)
        }
        #expect(wakes.withLock { $0 } > 0)
        #expect(try store.damagedStates().map(\.bytes) == [Data("{\"id\":".utf8)])
        #expect(try store.syncPoint().hasErrands)
        let errands = try store.errands(limit: 10)
        #expect(errands == [.replace(head.game)])
        let point = try store.settle(errands[0], .found(head))
        #expect(!point.hasErrands && point.waiting == 0)
        #expect(try store.latest(WordGame.self)?.answer == "사람")
        #expect(try store.damagedStates().count == 1)
        // What the app saves on top has the right base.
        try store.save(WordGame(id: "1", answer: "구름"))
        #expect(try store.takeOutgoing(limit: 1, bytes: 1 << 20).first?.base == 1)
    }

    @Test("is met by observers too, and by a list")
    func metElsewhere() async throws {
        let head = try version("1", "사람", revision: 1)
        _ = try store.apply(ChangePage(games: [head], cursor: 1, hasMore: false), since: 0)
        try spoil("1")
        #expect(try store.readableObjects(WordGame.self).unreadable.count == 1)
        #expect(try store.errands(limit: 10) == [.replace(head.game)])
    }

    @Test("of a save that the server does not have stays as it is, and nothing is asked for")
    func unsent() throws {
        try store.save(WordGame(id: "1", answer: "사람"))
        try spoil("1")
        #expect(throws: StoreError.self) { try store.object(WordGame.self, id: "1") }
        #expect(try store.errands(limit: 10).isEmpty)
        #expect(try store.heldGame(GameKey(collection: WordGame.collection, id: "1"))?.state == Array("{\"id\":".utf8))
        // The server's head does not take its place either.
        _ = try store.apply(
            ChangePage(games: [try version("1", "구름", revision: 1)], cursor: 1, hasMore: false), since: 0)
        #expect(throws: StoreError.self) { try store.object(WordGame.self, id: "1") }
        #expect(try store.delete(WordGame.self, id: "1"))
    }

    @Test("that a new life of the server may have is not offered to it; its head is shown")
    func newLife() throws {
        let head = try version("1", "사람", revision: 1)
        _ = try store.apply(ChangePage(games: [head], cursor: 1, hasMore: false), since: 0)
        _ = try store.startOver(epoch: UUID())
        try spoil("1")
        #expect(throws: StoreError.self) { try store.object(WordGame.self, id: "1") }
        #expect(try store.takeOutgoing(limit: 1, bytes: 1 << 20).isEmpty)
        _ = try store.apply(ChangePage(games: [head], cursor: 1, hasMore: false), since: 0)
        #expect(try store.object(WordGame.self, id: "1")?.answer == "사람")
    }

    @Test("that the server has as no JSON object is no damage")
    func noObject() throws {
        var head = try version("1", "사람", revision: 1)
        head.state = Array("\"text\"".utf8)
        _ = try store.apply(ChangePage(games: [head], cursor: 1, hasMore: false), since: 0)
        #expect(throws: StoreError.self) { try store.object(WordGame.self, id: "1") }
        #expect(try store.damagedStates().isEmpty)
    }
}
