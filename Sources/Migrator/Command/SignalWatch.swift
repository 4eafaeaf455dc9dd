import Foundation
import Synchronization

/// Turns the first SIGINT or SIGTERM into an interruption of the run, and a second one into the process's end.
///
/// The signals are blocked in the thread that makes it, and so in all that this one starts, and taken by a thread that waits for
/// nothing else: no code runs inside a signal handler.
final class SignalWatch: Sendable {
    private let isStopped = Atomic(false)
    private let formerMask: Mutex<sigset_t>

    init(_ interruption: Interruption) {
        var watched = sigset_t()
        sigemptyset(&watched)
        sigaddset(&watched, SIGINT)
        sigaddset(&watched, SIGTERM)
        var former = sigset_t()
        pthread_sigmask(SIG_BLOCK, &watched, &former)
        formerMask = Mutex(former)
        let signals = watched
        Thread.detachNewThread { [self] in watch(signals, interruption) }
    }

    /// Stops watching and lets signals do what they did before.
    func stop() {
        isStopped.store(true, ordering: .releasing)
        formerMask.withLock { mask in
            _ = pthread_sigmask(SIG_SETMASK, &mask, nil)
        }
    }

    private func watch(_ signals: sigset_t, _ interruption: Interruption) {
        var signals = signals
        var isInterrupted = false
        while !isStopped.load(ordering: .acquiring) {
            var pause = timespec(tv_sec: 0, tv_nsec: 200_000_000)
            let signal = sigtimedwait(&signals, nil, &pause)
            guard signal > 0 else { continue }
            if isInterrupted { _exit(128 &+ signal) }
            isInterrupted = true
            // Apart, since a request to a server that hangs must not keep the second signal waiting.
            Thread.detachNewThread { [self] in
                while !isStopped.load(ordering: .acquiring) {
                    interruption.interrupt(signal: signal)
                    Thread.sleep(forTimeInterval: 0.2)
                }
            }
        }
    }
}
