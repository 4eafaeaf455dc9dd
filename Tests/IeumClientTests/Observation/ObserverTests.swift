import Foundation
import Synchronization
import Testing
import TestSupport

@testable import IeumClient

@Suite("An observer", .timeLimit(.minutes(10)))
struct ObserverTests {
    /// A serial queue that does nothing until it is let go: an observer that is slow for as long as the test wants.
    private func heldQueue() -> DispatchQueue {
        let queue = DispatchQueue(label: "held")
        queue.suspend()
        return queue
    }

    private func isInitial(_ change: CollectionChange<Piece>?) -> Bool {
        if case .initial? = change { true } else { false }
    }

    @Test("gets initial first, once, never from inside observe, on the queue it gave")
    func initial() async {
        let table = RowTable(), log = CallLog()
        table.save(Piece(id: "b"), Piece(id: "a"))
        let queue = heldQueue()
        let key = DispatchSpecificKey<Bool>()
        queue.setSpecific(key: key, value: true)
        let isOnQueue = Mutex(true)
        let token = table.observe(on: queue) { change in
            isOnQueue.withLock { $0 = $0 && DispatchQueue.getSpecific(key: key) == true }
            log.receive(change)
        }
        #expect(log.calls.isEmpty)
        table.save(Piece(id: "c"))  // folds into initial
        queue.resume()
        await log.wait { $0.pieces?.count == 3 }
        table.save(Piece(id: "d"))
        await log.wait { $0.pieces?.count == 4 }
        #expect(isInitial(log.calls.first) && log.faults.isEmpty)
        #expect(isOnQueue.withLock { $0 })
        token.invalidate()
    }

    @Test("is called without a run loop where it names no queue")
    func defaultQueue() async {
        let table = RowTable(), log = CallLog()
        let token = table.observe(ObservedQuery(), log.receive)
        await log.wait { $0.pieces?.isEmpty == true }
        table.save(Piece(id: "a"))
        await log.wait { $0.pieces?.count == 1 }
        #expect(log.faults.isEmpty)
        token.invalidate()
    }

    @Test("gets commits that were not delivered yet as one update: gone rows vanish, a modified new row is new")
    func merges() async {
        let table = RowTable(), log = CallLog()
        table.save(Piece(id: "a"), Piece(id: "b"), Piece(id: "c"))
        let queue = DispatchQueue(label: "slow")
        let token = table.observe(ObservedQuery(), on: queue, log.receive)
        await log.wait { $0.calls == 1 }
        queue.suspend()
        table.save(Piece(id: "d"))
        table.save(Piece(id: "d", note: 1))
        table.save(Piece(id: "e"))
        table.delete("e")
        table.delete("a")
        table.save(Piece(id: "c", note: 1))
        await table.settle()
        queue.resume()
        await log.wait { $0.calls == 2 }
        guard case .update(let pieces, let deletions, let insertions, let modifications, let new)? = log.calls.last
        else {
            Issue.record("other calls: \(log.calls)")
            return
        }
        #expect(pieces.map(\.id) == ["b", "c", "d"])
        #expect(deletions == [0] && insertions == [2] && modifications == [2] && new == [1])
        #expect(log.faults.isEmpty)
        token.invalidate()
    }

    @Test("is not called for commits that change nothing in its collection, nor for what cancels out")
    func nothing() async {
        let table = RowTable(), log = CallLog()
        table.save(Piece(id: "a", rank: 1))
        let queue = DispatchQueue(label: "slow")
        let token = table.observe(ObservedQuery(isIncluded: { $0.rank < 10 }), on: queue, log.receive)
        await log.wait { $0.calls == 1 }
        table.save(Piece(id: "b", rank: 10))  // outside
        table.centre.committed(["another"])
        await table.settle()
        queue.suspend()
        table.save(Piece(id: "c"))
        await table.settle()
        table.delete("c")
        await table.settle()
        queue.resume()
        table.save(Piece(id: "a", rank: 11))  // leaves the collection
        await log.wait { $0.pieces?.isEmpty == true }
        #expect(log.calls.count == 2 && log.faults.isEmpty)
        token.invalidate()
    }

    @Test("sees a row whose sorting changed as deleted and inserted, at exact places")
    func moves() async {
        let table = RowTable(), log = CallLog()
        table.save(Piece(id: "a", rank: 1), Piece(id: "b", rank: 2), Piece(id: "c", rank: 3))
        let token = table.observe(.byRank, log.receive)
        await log.wait { $0.calls == 1 }
        table.save(Piece(id: "a", rank: 4))
        await log.wait { $0.calls == 2 }
        guard case .update(_, let deletions, let insertions, let modifications, _)? = log.calls.last else { return }
        #expect(deletions == [0] && insertions == [2] && modifications.isEmpty)
        #expect(log.faults.isEmpty)
        token.invalidate()
    }

    @Test("with an order, a slow queue and random commits stays exact", arguments: UInt64(1)...60)
    func random(seed: UInt64) async {
        var random = SeededRandom(seed: seed)
        let table = RowTable(), log = CallLog()
        let queue = DispatchQueue(label: "random")
        let token = table.observe(
            ObservedQuery(isIncluded: { $0.note != 3 }, isBefore: { $0.rank < $1.rank }), on: queue, log.receive)
        for _ in 0..<60 {
            let isHeld = Bool.random(using: &random)
            if isHeld { queue.suspend() }
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let id = String(Int.random(in: 0..<12, using: &random))
                if Int.random(in: 0..<4, using: &random) == 0 {
                    table.delete(id)
                } else {
                    let (rank, note) = (Int.random(in: 0..<6, using: &random), Int.random(in: 0..<5, using: &random))
                    table.save(Piece(id: id, rank: rank, note: note))
                }
                if Bool.random(using: &random) { await table.settle() }
            }
            if isHeld { queue.resume() }
        }
        table.save(Piece(id: "end", rank: 100))
        await log.wait { $0.pieces?.last?.id == "end" }
        #expect(log.faults.isEmpty, "seed \(seed)")
        let expected = table.pieces.filter { $0.note != 3 }.sorted { ($0.rank, $0.id) < ($1.rank, $1.id) }
        #expect(log.pieces == expected, "seed \(seed)")
        token.invalidate()
    }

    @Test("counts only what its own isSame tells apart, whatever other observers want")
    func filters() async {
        let table = RowTable(), all = CallLog(), ranks = CallLog()
        table.save(Piece(id: "a"))
        let first = table.observe(ObservedQuery(), all.receive)
        let second = table.observe(ObservedQuery(isSame: { $0.rank == $1.rank }), ranks.receive)
        await all.wait { $0.calls == 1 }
        await ranks.wait { $0.calls == 1 }
        table.save(Piece(id: "a", note: 1))
        await all.wait { $0.calls == 2 }
        table.save(Piece(id: "a", rank: 1, note: 1))
        await all.wait { $0.pieces?.first?.rank == 1 }
        await ranks.wait { $0.pieces?.first?.rank == 1 }
        #expect(ranks.calls.count == 2 && ranks.faults.isEmpty)
        first.invalidate()
        second.invalidate()
    }

    @Test("is not called any more once invalidate has returned on another queue, even with a call waiting")
    func invalidation() async {
        let table = RowTable(), log = CallLog(), other = CallLog()
        let queue = DispatchQueue(label: "slow")
        let token = table.observe(ObservedQuery(), on: queue, log.receive)
        await log.wait { $0.calls == 1 }
        queue.suspend()
        table.save(Piece(id: "a"))
        await table.settle()
        token.invalidate()
        token.invalidate()
        queue.resume()
        table.save(Piece(id: "b"))
        let witness = table.observe(ObservedQuery(), on: queue, other.receive)
        await other.wait { $0.calls == 1 }
        #expect(log.calls.count == 1)
        witness.invalidate()
    }

    @Test("may be invalidated inside its own callback, and ends with its token")
    func endings() async {
        let table = RowTable()
        let own = Mutex<ObservationToken?>(nil)
        let calls = Mutex(0)
        let log = CallLog()
        let token = table.observe { change in
            calls.withLock { $0 += 1 }
            own.withLock { $0 }?.invalidate()
            log.receive(change)
        }
        own.withLock { $0 = token }
        await log.wait { $0.calls == 1 }
        table.save(Piece(id: "a"))

        let probe = ReleaseProbe()
        weak let released = probe
        var dropped: ObservationToken? = table.observe { [probe] change in
            probe.touch()
            log.receive(change)
        }
        _ = consume probe
        await log.wait { $0.calls >= 2 }
        await table.settle()
        #expect(dropped != nil)
        dropped = nil
        await table.settle()
        await withCheckedContinuation { done in table.centre.calls.async { done.resume() } }
        #expect(released == nil)
    }

    @Test("from inside its callback may write, register and read: nothing is locked")
    func reentry() async {
        let table = RowTable(), log = CallLog(), inner = CallLog()
        let tokens = Mutex<[ObservationToken]>([])
        let token = table.observe { change in
            if case .initial = change {
                table.save(Piece(id: "from the callback"))
                let token = table.observe(ObservedQuery(), inner.receive)
                tokens.withLock { $0.append(token) }
            }
            log.receive(change)
        }
        await log.wait { $0.pieces?.count == 1 }
        await inner.wait { $0.pieces?.count == 1 }
        #expect(log.faults.isEmpty && inner.faults.isEmpty)
        token.invalidate()
    }

    @Test("hears of an error once, last; an observer that comes later begins anew")
    func errors() async {
        let table = RowTable(), log = CallLog()
        table.save(Piece(id: "a"))
        let token = table.observe(ObservedQuery(), log.receive)
        await log.wait { $0.calls == 1 }
        table.breakDown()
        await log.wait { $0.hasFailed }
        table.breakDown()
        await table.settle()
        let second = CallLog()
        let late = table.observe(ObservedQuery(), second.receive)
        await second.wait { $0.hasFailed }
        #expect(log.calls.count == 2 && log.faults.isEmpty)
        #expect(second.calls.count == 1)
        token.invalidate()
        late.invalidate()
    }

    @Test("10,000 observers, registered while others write, get exactly one initial each, first, and no row is lost")
    func crowd() async {
        let table = RowTable()
        let logs = (0..<10_000).map { _ in CallLog() }
        let writer = Task.detached {
            for round in 0..<200 {
                table.save(Piece(id: String(round % 5), note: round))
                await Task.yield()
            }
        }
        let tokens = logs.map { table.observe(ObservedQuery(), $0.receive) }
        await writer.value
        table.save(Piece(id: "end"))
        for log in logs { await log.wait { $0.pieces?.last?.id == "end" } }
        let pieces = table.pieces
        let wrong = logs.filter { !isInitial($0.calls.first) || !$0.faults.isEmpty || $0.pieces != pieces }
        #expect(wrong.isEmpty)
        for token in tokens { token.invalidate() }
    }

    @Test("a commit of 10,000 rows is one call")
    func page() async {
        let table = RowTable(), log = CallLog()
        let token = table.observe(ObservedQuery(), log.receive)
        await log.wait { $0.calls == 1 }
        table.commit((0..<10_000).map { (String($0), Piece(id: String($0))) })
        await log.wait { $0.pieces?.count == 10_000 }
        #expect(log.calls.count == 2 && log.faults.isEmpty)
        token.invalidate()
    }

    @Test("is not told of rows it saved itself, while others are; what follows is exact on top of them")
    func silent() async {
        let table = RowTable(), other = CallLog()
        table.save(Piece(id: "a", rank: 1), Piece(id: "b", rank: 3))
        let queue = DispatchQueue(label: "own")
        let calls = Mutex<[CollectionChange<Piece>]>([])
        let log = CallLog()
        let token = table.observe(.byRank, on: queue) { change in
            calls.withLock { $0.append(change) }
            log.receive(.initial(change.elements ?? []))
        }
        let witness = table.observe(.byRank, other.receive)
        await log.wait { $0.calls == 1 }
        await other.wait { $0.calls == 1 }
        queue.suspend()
        table.save(Piece(id: "c", rank: 4))  // pending when the observer writes itself
        await table.settle()
        table.save(Piece(id: "own", rank: 2), withoutNotifying: token)
        table.save(Piece(id: "rolled back", rank: 0), withoutNotifying: token, rollingBack: true)
        await table.settle()
        queue.resume()
        await log.wait { $0.calls == 2 }
        await other.wait { $0.pieces?.count == 4 }
        guard case .update(let pieces, let deletions, let insertions, _, _)? = calls.withLock({ $0.last }) else {
            Issue.record("other calls")
            return
        }
        #expect(pieces.map(\.id) == ["a", "own", "b", "c"])
        #expect(deletions.isEmpty && insertions == [3])
        table.save(Piece(id: "own", rank: 2, note: 1))
        await log.wait { $0.calls == 3 }
        guard case .update(_, [], [], [1], [1])? = calls.withLock({ $0.last }) else {
            Issue.record("other calls")
            return
        }
        token.invalidate()
        witness.invalidate()
    }

    @Test("sees what another process committed, by the store's data version")
    func foreign() async {
        let version = Mutex<Int64>(1)
        let centre = ObservationCentre(pollInterval: .milliseconds(1)) { version.withLock { $0 } }
        let table = RowTable(centre: centre), log = CallLog()
        let token = table.observe(ObservedQuery(), log.receive)
        await log.wait { $0.calls == 1 }
        table.commit([("foreign", Piece(id: "foreign"))], tellingTheCentre: false)
        version.withLock { $0 += 1 }
        await log.wait { $0.pieces?.count == 1 }
        #expect(log.faults.isEmpty)
        token.invalidate()
    }

    @Test("as a sequence begins with initial, merges for a slow consumer, and ends with its task")
    func sequence() async throws {
        let table = RowTable()
        table.save(Piece(id: "a"))
        let changes = CollectionChanges<Piece> { [centre = table.centre] in
            CollectionChanges.Iterator(Subscription<Piece>(ObservedQuery()), as: { $0 }) { subscription, ending in
                centre.token(for: subscription, in: table.collection, read: table.read, alsoEnding: ending)
            }
        }
        var iterator = changes.makeAsyncIterator()
        #expect(isInitial(try await iterator.next()))
        for round in 0..<50 { table.save(Piece(id: "b", note: round)) }
        await table.settle()
        guard case .update(let pieces, [], [1], [], [])? = try await iterator.next() else {
            Issue.record("not one merged insertion")
            return
        }
        #expect(pieces.last?.note == 49)

        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            var seen = 0
            for try await _ in changes {
                seen += 1
                start.yield()
            }
            return seen
        }
        for await _ in started.prefix(1) {}
        task.cancel()
        #expect(try await task.value == 1)
        table.breakDown()
        await #expect(throws: RowTable.Failure.self) { while try await iterator.next() != nil {} }
    }
}

/// An object whose release a test watches.
final class ReleaseProbe: Sendable {
    private let touches = Mutex(0)
    func touch() { touches.withLock { $0 += 1 } }
}

extension RowTable {
    /// Waits until every commit so far has been read and offered: an observer that registers now is served after all others.
    func settle() async {
        let log = CallLog()
        let token = observe(ObservedQuery(), on: DispatchQueue(label: "witness"), log.receive)
        await log.wait { $0.calls >= 1 }
        token.invalidate()
    }
}
