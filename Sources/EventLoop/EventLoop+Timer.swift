import CLibEvent
import Glibc

extension EventLoop {
    /// Calls a closure once or again and again, by the monotonic clock, never early.
    ///
    /// The timer ends when it is cancelled or released. Its closure is kept as long as the timer is, so a closure that
    /// uses the timer's owner should capture it weakly. Cancelling, rescheduling and releasing the timer are safe in its
    /// own closure.
    public final class Timer {
        private let loop: EventLoop
        private let interval: Duration?
        private let handler: () -> Void
        private let event: OpaquePointer
        private var deadline: ContinuousClock.Instant

        /// Whether the timer will fire.
        public private(set) var isScheduled = false

        /// Makes a timer and starts it.
        /// - Parameters:
        ///   - loop: the loop that calls.
        ///   - delay: from now; zero or less means in the next turn of the loop.
        ///   - interval: from one call to the next when it repeats. A late call does not shift the following ones; calls
        ///     that were missed altogether are skipped. At least a millisecond.
        ///   - handler: is called each time.
        public init(
            on loop: EventLoop, after delay: Duration, every interval: Duration? = nil, _ handler: @escaping () -> Void
        ) {
            self.loop = loop
            self.interval = interval.map { max($0, .milliseconds(1)) }
            self.handler = handler
            self.deadline = loop.now
            // The context is set below, once `self` is whole. Only a lack of memory fails here, which Swift answers
            // with a trap everywhere.
            guard let event = event_new(loop.base, -1, 0, nil, nil) else {
                preconditionFailure("no memory for a timer")
            }
            self.event = event
            event_assign(
                event, loop.base, -1, 0,
                { _, _, context in
                    guard let context else { return }
                    Unmanaged<Timer>.fromOpaque(context).takeUnretainedValue().fire()
                }, Unmanaged.passUnretained(self).toOpaque())
            reschedule(after: delay)
        }

        deinit {
            event_free(event)
        }

        /// Ends the timer; its closure is not called any more. It can be started again by ``reschedule(after:)``.
        public func cancel() {
            isScheduled = false
            event_del(event)
        }

        /// Lets the timer fire after a delay from now instead of when it would have; a repeating one goes on from there.
        public func reschedule(after delay: Duration) {
            schedule(at: loop.now + max(delay, .zero), after: delay)
        }

        private func schedule(at deadline: ContinuousClock.Instant, after delay: Duration) {
            self.deadline = deadline
            isScheduled = true
            var time = timeval(delay)
            let status = event_add(event, &time)
            precondition(status == 0, "no memory for a timer")
        }

        private func fire() {
            let now = loop.now
            // The loop's clock is coarse and stands still during a turn: it may be some milliseconds behind.
            guard now >= deadline else { return schedule(at: deadline, after: deadline - now) }
            if let interval {
                var next = deadline + interval
                if next <= now { next = now + interval }
                schedule(at: next, after: next - now)
            } else {
                isScheduled = false
            }
            handler()
        }
    }
}
