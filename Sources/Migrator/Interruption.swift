import Foundation
import Postgres
import Synchronization

/// Stops a run from outside, for a signal or a shutdown: cancels what the database is doing and ends every wait.
///
/// Safe to use from any thread, though not from inside a signal handler.
public final class Interruption: Sendable {
    private struct State {
        var signal: Int32?
        var running: CancelHandle?
    }

    private let state = Mutex(State())
    private let pipe: (read: Int32, write: Int32)

    /// Nothing is interrupted yet.
    public init() {
        var ends: [Int32] = [-1, -1]
        // Without a pipe a wait only ends by itself.
        if Foundation.pipe(&ends) == 0 {
            for end in ends {
                _ = fcntl(end, F_SETFD, FD_CLOEXEC)
                _ = fcntl(end, F_SETFL, O_NONBLOCK)
            }
        }
        pipe = (ends[0], ends[1])
    }

    deinit {
        if pipe.read >= 0 { close(pipe.read) }
        if pipe.write >= 0 { close(pipe.write) }
    }

    /// Stops the run, which then fails as interrupted by `signal`. Call again when it goes on: a request to cancel that arrives
    /// between two statements has no effect.
    public func interrupt(signal: Int32) {
        let handle = state.withLock { state in
            state.signal = state.signal ?? signal
            return state.running
        }
        var byte: UInt8 = 0
        _ = write(pipe.write, &byte, 1)
        // A server that cannot be reached any more ends the statement by itself.
        try? handle?.cancel()
    }

    /// The signal that stopped the run, if one did.
    var signal: Int32? { state.withLock { $0.signal } }

    /// Fails when the run was stopped.
    func check() throws(MigrationError) {
        if let signal { throw .interrupted(by: signal) }
    }

    /// Waits for a time, or shorter when the run is stopped.
    func wait(for duration: Duration) throws(MigrationError) {
        try check()
        let milliseconds = Int32(clamping: duration.milliseconds)
        var descriptor = pollfd(fd: pipe.read, events: Int16(POLLIN), revents: 0)
        _ = poll(&descriptor, 1, max(milliseconds, 0))
        try check()
    }

    /// Runs something on a connection that may be cancelled meanwhile.
    @discardableResult
    func cancelling<Value>(
        _ connection: BlockingConnection, _ body: () throws(DatabaseError) -> Value
    ) throws(DatabaseError) -> Value {
        let handle = try connection.cancelHandle()
        let isStopped = state.withLock { state in
            state.running = handle
            return state.signal != nil
        }
        defer { state.withLock { $0.running = nil } }
        if isStopped { throw DatabaseError(.cancelled, "stopped before it was sent") }
        return try body()
    }
}

extension MigrationError {
    static func interrupted(
        by signal: Int32, _ outcome: String = "what was under way is rolled back"
    ) -> MigrationError {
        let name = signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "signal \(signal)"
        return MigrationError(
            .interrupted(signal: signal), "stopped by \(name); \(outcome)",
            hint: "Run it again to go on.")
    }
}

extension Duration {
    /// Whole milliseconds, rounded down.
    var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds.multipliedReportingOverflow(by: 1000).partialValue &+ attoseconds / 1_000_000_000_000_000
    }
}
