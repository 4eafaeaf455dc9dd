import EventLoop
import Glibc
import Testing

@Suite("timers")
struct TimerTests {
    @Test("timers fire in the order of their deadlines and never early")
    func order() throws {
        let loop = try EventLoop()
        let seen = Box<[Int]>([])
        let start = loop.now
        let timers = [30, 10, 20, 0, 40].map { delay in
            EventLoop.Timer(on: loop, after: .milliseconds(delay)) {
                #expect(loop.now - start >= .milliseconds(delay))
                seen.value.append(delay)
            }
        }
        #expect(loop.run(until: { seen.value.count == timers.count }, timeout: .seconds(60)))
        #expect(seen.value == [0, 10, 20, 30, 40])
        #expect(timers.allSatisfy { !$0.isScheduled })
    }

    @Test("a timer cancelled by another one's callback in the same turn does not fire")
    func cancelsInCallback() throws {
        let loop = try EventLoop()
        let seen = Box<[String]>([])
        let victim = Box<EventLoop.Timer?>(nil)
        let first = EventLoop.Timer(on: loop, after: .milliseconds(1)) {
            seen.value.append("first")
            victim.value?.cancel()
        }
        victim.value = EventLoop.Timer(on: loop, after: .milliseconds(2)) { seen.value.append("victim") }
        let last = EventLoop.Timer(on: loop, after: .milliseconds(30)) { seen.value.append("last") }
        usleep(5_000)  // Both are due before the loop looks.
        #expect(loop.run(until: { seen.value.contains("last") }, timeout: .seconds(60)))
        #expect(seen.value == ["first", "last"])
        first.cancel()
        last.cancel()
    }

    @Test("a repeating timer repeats until it cancels itself")
    func repeats() throws {
        let loop = try EventLoop()
        let count = Box(0)
        let timer = Box<EventLoop.Timer?>(nil)
        timer.value = EventLoop.Timer(on: loop, after: .zero, every: .milliseconds(2)) {
            count.value += 1
            if count.value == 5 { timer.value?.cancel() }
        }
        #expect(loop.run(until: { count.value == 5 }, timeout: .seconds(60)))
        #expect(!loop.run(until: { count.value > 5 }, timeout: .milliseconds(30)))
        timer.value = nil
    }

    @Test("rescheduling moves the deadline, both ways, and starts a fired timer again")
    func reschedules() throws {
        let loop = try EventLoop()
        let fired = Box(0)
        let timer = EventLoop.Timer(on: loop, after: .seconds(100)) { fired.value += 1 }
        timer.reschedule(after: .milliseconds(1))
        #expect(loop.run(until: { fired.value == 1 }, timeout: .seconds(60)))
        timer.reschedule(after: .milliseconds(1))
        #expect(loop.run(until: { fired.value == 2 }, timeout: .seconds(60)))
        timer.reschedule(after: .milliseconds(1))
        timer.reschedule(after: .seconds(100))
        #expect(!loop.run(until: { fired.value == 3 }, timeout: .milliseconds(30)))
        #expect(timer.isScheduled)
    }

    @Test("releasing a timer in its own callback is safe and ends it, and its closure goes with it")
    func releasesItself() throws {
        final class Token {}
        let loop = try EventLoop()
        let timer = Box<EventLoop.Timer?>(nil)
        weak var token: Token?
        let count = Box(0)
        do {
            let captured = Token()
            token = captured
            timer.value = EventLoop.Timer(on: loop, after: .zero, every: .milliseconds(1)) {
                timer.value = nil
                count.value += 1
                _ = captured
            }
        }
        #expect(loop.run(until: { count.value > 0 }, timeout: .seconds(60)))
        #expect(!loop.run(until: { count.value > 1 }, timeout: .milliseconds(20)))
        #expect(token == nil)
    }

    @Test("extreme delays are held in range", arguments: [Duration.seconds(Int64.max), .seconds(-5), .nanoseconds(1)])
    func extremes(delay: Duration) throws {
        let loop = try EventLoop()
        let fired = Box(false)
        let timer = EventLoop.Timer(on: loop, after: delay) { fired.value = true }
        let shouldFire = delay < .seconds(1)
        #expect(loop.run(until: { fired.value }, timeout: .milliseconds(shouldFire ? 60_000 : 10)) == shouldFire)
        timer.cancel()
    }
}
