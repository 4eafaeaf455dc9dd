import Foundation
import Synchronization
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("GameStore under the sync engine")
struct SyncedStoreTests {
    private final class Owner: Sendable {}
    private let owner = Owner()

    @Test("simulated histories of saves, pushes, pulls, cuts and restores keep their promises in a GameStore")
    func simulations() throws {
        let first = SeededRandom(for: "simulation in GameStore").seed
        for index in 0..<40 {
            let simulation = try Simulation(seed: first &+ UInt64(index)) {
                try GameStore(path: ":memory:", schemaVersion: 1)
            }
            #expect(simulation.run() == [], "IEUM_SEED=\(simulation.seed)")
        }
    }

    @Test("a pulled page is one commit for observers, none for the outbox, and its games are the app's")
    func pulledPage() throws {
        let store = try GameStore.inMemory()
        let told = Mutex<[Set<String>]>([])
        let saved = Mutex(0)
        store.whenCommitted { commit in told.withLock { $0.append(commit.collections) } }
        store.whenSaved(for: self.owner) { saved.withLock { $0 += 1 } }
        let own = DeviceID(UUID())
        let signIn = SignIn(player: PlayerID(UUID()), device: own, revision: 0)
        _ = try store.meet(signIn, epoch: UUID(), clockOffset: 0, offersRefused: false)
        var newest = WordGame(id: "0", timestamp: Date(timeIntervalSinceReferenceDate: 1), answer: "")
        let games = try (1...1_000).map { number in
            newest = WordGame(
                id: "\(number)", timestamp: Date(timeIntervalSinceReferenceDate: Double(number)), answer: "")
            let time = Timestamp(clamping: Int64(10_000 - number))
            return GameVersion(
                game: try GameKey(collection: WordGame.collection, id: newest.id),
                header: GameHeader(
                    revision: Int64(number), saved: time, stamp: time, device: DeviceID(UUID()), schema: 0),
                state: try StateCoder.encode(newest))
        }
        _ = try store.apply(ChangePage(games: games, cursor: 1_000, hasMore: false), since: 0)
        #expect(told.withLock { $0 } == [[WordGame.collection]])
        #expect(saved.withLock { $0 } == 0)
        #expect(try store.count(WordGame.self) == 1_000)
        #expect(try store.latest(WordGame.self) == newest)
        newest.currentRow = 3
        try store.save(newest)
        #expect(saved.withLock { $0 } == 1)
        let push = try #require(try store.takeOutgoing(limit: 9, bytes: 1 << 20).first)
        #expect(push.base == 1_000)
        #expect(push.saved.map { $0 > Timestamp(clamping: 9_000) } == true)
    }
}

extension GameStore: SimulatedStorage {
    var current: StoredState {
        // A failure shows as nothing stored, which no check lets pass.
        guard let point = try? syncPoint(), let games = try? heldGames(), let events = try? events(limit: .max) else {
            return StoredState(games: [:], epoch: nil, cursor: .max, events: [])
        }
        return StoredState(
            games: games, epoch: point.epoch, cursor: point.cursor, events: events.map { ($0, false) })
    }

    func save(_ key: GameKey, _ text: [UInt8]?, at wall: Timestamp) {
        try? write { transaction in
            transaction.clock = { wall }
            try transaction.save(key, state: text)
        }
    }
}
