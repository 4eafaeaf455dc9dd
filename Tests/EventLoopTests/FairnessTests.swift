import Glibc
import TestSupport
import Testing

@testable import EventLoop

@Suite("many that send much")
struct FairnessTests {
    @Test("let one that sends little wait for a short turn, and come to their own turns themselves")
    func modestBesideGreedy() throws {
        let loop = try EventLoop()
        let greedy = try (0..<40).map { _ in try Link(loop: loop) }
        let modest = try Link(loop: loop)
        let lines = Box(0)
        for link in greedy {
            link.recorder.keepsLines = false
            link.recorder.reaction = { _, _ in
                lines.value += 1
                // As long as a command takes.
                let end = ContinuousClock.now + .microseconds(20)
                while ContinuousClock.now < end {}
            }
            link.peer.send(String(repeating: "x\n", count: 2_000))
        }
        #expect(loop.run(until: { greedy.allSatisfy { $0.recorder.lineCount > 0 } }, timeout: .seconds(60)))
        let waited = Box([Int]())
        for round in 1...20 {
            let before = lines.value
            modest.peer.send("y\n")
            #expect(loop.run(until: { modest.recorder.lineCount == round }, timeout: .seconds(60)))
            waited.value.append(lines.value - before)
        }
        // A turn has time for a portion or a few, not for one of each.
        #expect(waited.value.sorted()[18] <= 3 * Connection.maxLinesAtOnce.further, "\(waited.value)")
        #expect(greedy.allSatisfy { $0.recorder.lineCount < 2_000 })
        #expect(loop.run(until: { lines.value == 40 * 2_000 }, timeout: .seconds(60)), "all of theirs comes too")
    }

    @Test(
        "a crowd that yields lets one that does not go before it, has little of each turn, and comes to its turn itself"
    )
    func yielding() throws {
        let loop = try EventLoop()
        let crowd = try (0..<300).map { _ in try Link(loop: loop) }
        let modest = try Link(loop: loop)
        let lines = Box(0)
        for link in crowd {
            link.connection?.yieldsToOthers = true
            link.recorder.reaction = { _, _ in
                lines.value += 1
                // As long as a command takes.
                let end = ContinuousClock.now + .microseconds(20)
                while ContinuousClock.now < end {}
            }
        }
        var before: [Int] = []
        for round in 1...20 {
            for link in crowd { link.peer.send("x\n") }
            modest.peer.send("y\n")
            #expect(loop.run(until: { modest.recorder.lineCount == round }, timeout: .seconds(60)))
            before.append(lines.value - (round - 1) * crowd.count)
            #expect(loop.run(until: { lines.value == round * crowd.count }, timeout: .seconds(60)), "all comes")
        }
        // Of 300 no more than a turn or two has time for.
        #expect(before.sorted()[18] <= 30, "\(before)")
        #expect(crowd.allSatisfy { $0.recorder.lineCount == 20 })
        // Their end, too, with a line before it.
        crowd[0].peer.send("z\n")
        crowd[0].peer.finishSending()
        #expect(
            loop.run(until: { crowd[0].recorder.events.contains(.inputEnded(unterminated: 0)) }, timeout: .seconds(60)))
        #expect(crowd[0].recorder.lineCount == 21)
    }

    @Test("share the time: none is done while another has hardly begun")
    func greedyAmongThemselves() throws {
        let loop = try EventLoop()
        let greedy = try (0..<8).map { _ in try Link(loop: loop) }
        for link in greedy {
            link.recorder.keepsLines = false
            link.peer.send(String(repeating: "x\n", count: 2_000))
        }
        #expect(loop.run(until: { greedy.contains { $0.recorder.lineCount >= 1_000 } }, timeout: .seconds(60)))
        let counts = greedy.map(\.recorder.lineCount)
        #expect((counts.min() ?? 0) >= 700, "\(counts)")
    }
}
