import EventLoop
import TestSupport
import Testing

@testable import SyncServer

@Suite("short waits")
struct TimingWheelTests {
    private typealias Wheel = TimingWheel<Int>
    private let start = ContinuousClock.now

    @Test("nothing comes early, and all of it within a tick of when it is due, whenever it is looked for")
    func exact() {
        var random = SeededRandom(for: "TimingWheelTests.exact")
        for _ in 0..<50 {
            var wheel = Wheel(at: start)
            var now = start
            var waiting: [Int: ContinuousClock.Instant] = [:]
            for number in 0..<400 {
                // Mostly short steps; now and then so long that the wheel has gone round, or much has.
                let step = Int.random(in: 0..<20, using: &random) == 0 ? 5_000 : 30
                now += .milliseconds(Int.random(in: 0...step, using: &random))
                if Bool.random(using: &random) {
                    let delay = Duration.milliseconds(Int.random(in: -10...1_500, using: &random))
                    wheel.add(number, after: delay, at: now)
                    waiting[number] = now + min(max(delay, .zero), Wheel.longest)
                } else {
                    for taken in wheel.takeDue(at: now) {
                        let due = waiting.removeValue(forKey: taken)
                        #expect(due.map { $0 <= now } ?? false, "\(taken) is early")
                    }
                    #expect(!waiting.values.contains { $0 + Wheel.tick < now })
                }
                #expect(wheel.count == waiting.count)
            }
        }
    }

    @Test("one timer does all of it in time, and rests when nothing waits")
    func driven() throws {
        let loop = try EventLoop()
        let waits = ShortWaits(loop: loop)
        var done: [(asked: Duration, waited: Duration)] = []
        for delay in [0, 15, 35, 60, 35].map({ Duration.milliseconds($0) }) {
            let begin = loop.now
            waits.after(delay) { done.append((delay, loop.now - begin)) }
        }
        #expect(loop.run(until: { done.count == 5 }, timeout: .seconds(60)))
        #expect(done.allSatisfy { $0.waited >= $0.asked }, "\(done)")
        #expect(waits.count == 0)
        // Work may ask for more of it.
        waits.after(.zero) { waits.after(.zero) { done = [] } }
        #expect(loop.run(until: { done.isEmpty }, timeout: .seconds(60)))
    }
}
