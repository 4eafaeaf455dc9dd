import CLibEvent
import Glibc

/// Calls a closure on the loop's thread when the process gets a signal; while it lives, the signal's own effect is off.
///
/// libevent delivers signals to one loop of a process only: keep all of them on the same one. A launcher may have left the
/// signal blocked, as one that forks from a thread with blocked signals does; making a watch unblocks it in this thread.
public final class SignalWatch {
    /// The signal's number, e.g. `SIGTERM`.
    public let signal: Int32

    private let loop: EventLoop
    private let handler: () -> Void
    private var event: OpaquePointer?

    /// Watches for a signal until ``cancel()`` or release.
    public init(on loop: EventLoop, signal: Int32, _ handler: @escaping () -> Void) throws(EventLoopError) {
        self.loop = loop
        self.signal = signal
        self.handler = handler
        let context = Unmanaged.passUnretained(self).toOpaque()
        event = event_new(
            loop.base, signal, Int16(EV_SIGNAL | EV_PERSIST),
            { _, _, context in
                guard let context else { return }
                Unmanaged<SignalWatch>.fromOpaque(context).takeUnretainedValue().handler()
            }, context)
        guard let event else { throw EventLoopError(call: "event_new") }
        guard event_add(event, nil) == 0 else { throw EventLoopError(call: "sigaction") }
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, signal)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    deinit {
        if let event { event_free(event) }
    }

    /// Ends the watch and gives the signal its earlier effect back.
    public func cancel() {
        if let event { event_del(event) }
    }
}
