import EventLoop
import Foundation
import TestSupport
import Testing
import Wire

@testable import SyncServer

private final class NoOrigin: PushOrigin {
    func pushFinished(_ request: RequestID, _ result: PushResult) {}
    func deviceVerified(at moment: ContinuousClock.Instant) {}
}

/// Pushes with a running number in `base`, so that a test sees their order.
private struct PushMaker {
    let origin = NoOrigin()
    let players: [PlayerID] = (0..<5).map { _ in PlayerID(UUID()) }
    let device = DeviceID(UUID())
    var number: Int64 = 0

    mutating func make(player: Int, game: Int, bytes: Int = 10, deadline: ContinuousClock.Instant = .now)
        throws -> PendingPush
    {
        number += 1
        let key = try GameKey(collection: "handle.game", id: "g\(game)")
        return PendingPush(
            push: Push(game: key, base: number, state: [UInt8](repeating: 0x31, count: bytes)),
            saved: Timestamp(clamping: number), player: players[player], device: device,
            request: RequestID(rawValue: 0),
            origin: origin, deadline: deadline)
    }
}

@Test("batches keep each player's order, hold a game once and lose nothing, whatever comes back")
func keepsOrder() throws {
    var random = SeededRandom(for: "PushQueue.keepsOrder")
    for _ in 0..<300 {
        var maker = PushMaker()
        var queue = PushQueue()
        var sent = 0
        var taken: [PlayerID: [Int64]] = [:]
        while sent < 60 || !queue.isEmpty {
            if sent < 60, Bool.random(using: &random) {
                for _ in 0..<Int.random(in: 1...8, using: &random) {
                    let player = Int.random(in: 0..<5, using: &random)
                    queue.append(try maker.make(player: player, game: Int.random(in: 0..<3, using: &random)))
                    sent += 1
                }
            }
            let limit = Int.random(in: 1...10, using: &random)
            let batch = queue.takeBatch(maxRows: limit, maxBytes: 5_000)
            #expect(batch.count <= limit)
            let games = batch.map { "\($0.player) \($0.push.game)" }
            #expect(Set(games).count == games.count)
            #expect(batch.map(\.player) == batch.map(\.player).sorted())
            if Int.random(in: 0..<4, using: &random) == 0 {
                queue.putBack(batch, isolating: batch.count > 1 && Bool.random(using: &random))
            } else {
                queue.finished(rows: batch.count)
                for push in batch { taken[push.player, default: []].append(push.push.base ?? 0) }
            }
        }
        #expect(taken.values.map(\.count).reduce(0, +) == sent)
        for numbers in taken.values { #expect(numbers == numbers.sorted()) }
    }
}

@Test("a row that spoils its batch is alone after a few halves, and then batches grow again")
func isolates() throws {
    var maker = PushMaker()
    var queue = PushQueue()
    for game in 0..<64 { queue.append(try maker.make(player: game % 5, game: game)) }
    let bad: Int64 = 23
    var refused: [Int64] = []
    var stored = 0
    var rounds = 0
    while !queue.isEmpty {
        rounds += 1
        let batch = queue.takeBatch(maxRows: 64, maxBytes: 1 << 20)
        if batch.contains(where: { $0.push.base == bad }) {
            if batch.count > 1 {
                queue.putBack(batch, isolating: true)
            } else {
                refused += batch.compactMap(\.push.base)
                queue.finished(rows: 1)
            }
        } else {
            stored += batch.count
            queue.finished(rows: batch.count)
        }
    }
    #expect(refused == [bad])
    #expect(stored == 63)
    #expect(rounds < 80)
    for game in 0..<10 { queue.append(try maker.make(player: game % 5, game: game)) }
    #expect(queue.takeBatch(maxRows: 64, maxBytes: 1 << 20).count == 10)
}

@Test("a batch stops at its bytes, but one push always fits")
func bounds() throws {
    var maker = PushMaker()
    var queue = PushQueue()
    for game in 0..<4 { queue.append(try maker.make(player: 0, game: game, bytes: 1000)) }
    #expect(queue.takeBatch(maxRows: 10, maxBytes: 2000).count == 2)
    #expect(queue.takeBatch(maxRows: 10, maxBytes: 1).count == 1)
    #expect(queue.takeBatch(maxRows: 10, maxBytes: 1 << 20).count == 1)
    #expect(queue.isEmpty)
}

@Test("who pushes much has a bounded share of a batch: another's push is in the next one, and all comes in order")
func shares() throws {
    var maker = PushMaker()
    var queue = PushQueue()
    for game in 0..<200 { queue.append(try maker.make(player: 0, game: game)) }
    #expect(queue.takeBatch(maxRows: 512, maxBytes: 1 << 20).count == PushQueue.maxRowsPerPlayer)
    queue.append(try maker.make(player: 1, game: 0))
    let next = queue.takeBatch(maxRows: 512, maxBytes: 1 << 20)
    #expect(next.count == PushQueue.maxRowsPerPlayer + 1)
    #expect(next.contains { $0.player == maker.players[1] })
    var numbers: [Int64] = []
    while !queue.isEmpty { numbers += queue.takeBatch(maxRows: 512, maxBytes: 1 << 20).compactMap(\.push.base) }
    #expect(numbers == (2 * PushQueue.maxRowsPerPlayer + 1...200).map { Int64($0) })
}

@Test("only pushes that waited too long are taken out")
func expires() throws {
    var maker = PushMaker()
    var queue = PushQueue()
    let start = ContinuousClock.now
    for game in 0..<10 {
        let deadline = start + .seconds(game % 2 == 0 ? 1 : 3)
        queue.append(try maker.make(player: game % 3, game: game, deadline: deadline))
    }
    let expired = queue.removeExpired(at: start + .seconds(2))
    #expect(expired.count == 5)
    #expect(queue.count == 5)
    #expect(queue.takeBatch(maxRows: 100, maxBytes: 1 << 20).count == 5)
}

@Test("a FIFO gives back what a rush has taken, and keeps room for the few that come and go")
func fifoGivesBack() {
    var queue = FIFO<Int>()
    for number in 0..<10_000 { queue.append(number) }
    #expect(queue.capacity >= 9_999)
    while queue.popFirst() != nil {}
    #expect(queue.capacity == 0)
    for number in 0..<20 { queue.append(number) }
    while queue.popFirst() != nil {}
    #expect(queue.capacity >= 19)
}

@Test("a FIFO gives what it got, in order, through any mixture of appends, pops and returns")
func fifo() {
    var random = SeededRandom(for: "PushQueue.fifo")
    for _ in 0..<200 {
        var queue = FIFO<Int>()
        var model: [Int] = []
        for step in 0..<400 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                queue.append(step)
                model.append(step)
            case 5..<8:
                #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
            case 8:
                let back = (0..<Int.random(in: 0..<4, using: &random)).map { -$0 }
                queue.prepend(contentsOf: back)
                model.insert(contentsOf: back, at: 0)
            default:
                let divisor = Int.random(in: 2..<5, using: &random)
                #expect(queue.removeAll { $0 % divisor == 0 } == model.filter { $0 % divisor == 0 })
                model.removeAll { $0 % divisor == 0 }
            }
            #expect(queue.count == model.count)
            #expect(queue.first == model.first)
        }
    }
}
