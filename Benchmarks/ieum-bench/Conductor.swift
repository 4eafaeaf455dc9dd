import EventLoop
import Glibc

/// The one loop of the process, and the one place where it waits: for load, for children, for an interruption.
///
/// Everything runs on the main thread. Closures on the loop cannot throw, so they leave their error here and the wait
/// that is under way throws it.
final class Conductor {
    let loop: EventLoop
    private var failure: (any Error)?
    private var signals: [SignalWatch] = []
    private var signalCount = 0

    init() throws {
        loop = try EventLoop()
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signals.append(
                try SignalWatch(on: loop, signal: signal) { [unowned self] in
                    // A second one does not wait for a tidy end. (PostgreSQL ends with us in any case.)
                    signalCount += 1
                    if signalCount > 1 { _exit(130) }
                    fail(Interrupted())
                })
        }
    }

    /// Makes the wait under way, or else the next one, throw. The first error stays.
    func fail(_ error: any Error) {
        if failure == nil { failure = error }
    }

    /// Runs the loop until something holds.
    /// - Throws: what ``fail(_:)`` was given, or an error naming what did not come in time.
    func wait(for what: @autoclosure () -> String, atMost limit: Duration, until condition: () -> Bool) throws {
        let isReached = loop.run(until: { failure != nil || condition() }, timeout: limit)
        if let failure {
            self.failure = nil
            throw failure
        }
        guard isReached else { throw BenchError("\(what()) did not come within \(limit)") }
    }

    /// Lets time pass.
    func pause(_ duration: Duration) throws {
        var isOver = false
        let timer = EventLoop.Timer(on: loop, after: duration) { isOver = true }
        defer { timer.cancel() }
        try wait(for: "the end of a pause", atMost: duration + .seconds(5)) { isOver }
    }

    /// Sees whether an interruption came while something else than the loop was running.
    func checkInterruption() throws {
        try pause(.zero)
    }
}

/// The monotonic clock in nanoseconds.
func monotonicNanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// The wall clock in microseconds since 1970.
func wallMicroseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
}
