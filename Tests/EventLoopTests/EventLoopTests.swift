import EventLoop
import Glibc
import Testing

@Suite("the loop")
struct EventLoopTests {
    @Test("deferred work runs in order, and work that it enqueues runs too")
    func deferredWork() throws {
        let loop = try EventLoop()
        let seen = Box<[Int]>([])
        loop.enqueue {
            seen.value.append(1)
            loop.enqueue { seen.value.append(3) }
        }
        loop.enqueue { seen.value.append(2) }
        #expect(loop.run(until: { seen.value.count == 3 }, timeout: .seconds(60)))
        #expect(seen.value == [1, 2, 3])
    }

    @Test("an endless chain of deferred work starves neither timers nor descriptors")
    func deferredWorkIsFair() throws {
        let loop = try EventLoop()
        let pipe = try Pipe()
        let isOver = Box(false)
        func chain() { if !isOver.value { loop.enqueue(chain) } }
        chain()
        let isRead = Box(false)
        let watch = try DescriptorWatch(on: loop, descriptor: pipe.reader, interest: .read) { _ in isRead.value = true }
        let timer = EventLoop.Timer(on: loop, after: .milliseconds(5)) { pipe.write("x") }
        #expect(loop.run(until: { isRead.value }, timeout: .seconds(60)))
        isOver.value = true
        // Work that uses its loop keeps it until it has run.
        #expect(!loop.run(until: { false }, timeout: .zero))
        watch.cancel()
        timer.cancel()
    }

    @Test("run(until:timeout:) gives up at its timeout and tells so")
    func runTimesOut() throws {
        let loop = try EventLoop()
        let start = loop.now
        #expect(!loop.run(until: { false }, timeout: .milliseconds(20)))
        #expect(loop.now - start >= .milliseconds(20))
    }

    @Test("stop ends run after the turn under way")
    func stops() throws {
        let loop = try EventLoop()
        let isLaterDone = Box(false)
        loop.enqueue { loop.stop() }
        loop.enqueue { isLaterDone.value = true }
        loop.run()
        #expect(isLaterDone.value)
    }

    @Test("work posted from other threads runs on the loop's thread, in each thread's order, none lost")
    func posts() throws {
        let loop = try EventLoop()
        let perThread = 2_000
        let seen = Collected()
        let threads = (0..<4).map { thread in
            let remote = loop.remote
            return spawn {
                for number in 0..<perThread { remote.post { seen.append((thread, number)) } }
            }
        }
        #expect(loop.run(until: { seen.values.count == 4 * perThread }, timeout: .seconds(60)))
        for thread in threads { pthread_join(thread, nil) }
        for thread in 0..<4 {
            #expect(seen.values.filter { $0.0 == thread }.map(\.1) == Array(0..<perThread))
        }
    }

    @Test("posting to a loop that is gone drops the work and says so")
    func postsTooLate() throws {
        var loop: EventLoop? = try EventLoop()
        let remote = try #require(loop?.remote)
        #expect(remote.post {})
        loop = nil
        #expect(!remote.post {})
    }
}

/// What posted closures bring back. `@unchecked`: touched on the loop's thread alone, which a test's closures cannot prove.
private final class Collected: @unchecked Sendable {
    var values: [(Int, Int)] = []
    func append(_ value: (Int, Int)) { values.append(value) }
}
