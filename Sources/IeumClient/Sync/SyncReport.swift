import Dispatch
import Synchronization

/// What an engine does, step by step, for a program of this package that waits for it on a thread of its own. An app has
/// ``SyncEngine/status`` and ``SyncEngine/events``.
package enum SyncReport: Sendable {
    /// The status is another one: the engine is at work.
    case worked
    /// All that the server was heard to have is in the store: told once on each connection, and with each change after that.
    case caughtUp(SyncPoint)
    /// The connection is gone, or did not come about, or the server asked for a pause; the next try is after this time.
    case interrupted(ClientError, retryIn: Duration)
    /// The store could not be read or written; the next try is after this time, if there is one.
    case storageFailed(any Error, retryIn: Duration?)
    /// Nothing is tried any more; the server's words, if they are the reason.
    case signedOut(SyncSignOut, ClientError?)
    /// What ``SyncEngine/waitUntilSynced()`` would have waited for since the start came about. Told once after each start.
    case synced
}

/// An engine's reports, for one thread that takes them one after the other.
package final class SyncReports: Sendable {
    private let waiting = Mutex<[SyncReport]>([])
    private let count = DispatchSemaphore(value: 0)

    /// Begins empty.
    package init() {}

    /// Adds a report. From any thread.
    package func put(_ report: SyncReport) {
        let isNew = waiting.withLock { reports in
            switch (reports.last, report) {
            // That it is at work says the same twice, and of two points the later says all.
            case (.worked?, .worked): return false
            case (.caughtUp?, .caughtUp):
                reports[reports.count - 1] = report
                return false
            default:
                reports.append(report)
                return true
            }
        }
        if isNew { count.signal() }
    }

    /// Takes the oldest one; waits for it until a time, or for ever.
    /// - Returns: nil when the time is over.
    package func next(until deadline: ContinuousClock.Instant?) -> SyncReport? {
        if let deadline {
            let rest = max(.zero, deadline - .now)
            let seconds = min(rest / .seconds(1), 1e9)
            guard count.wait(timeout: .now() + seconds) == .success else { return nil }
        } else {
            count.wait()
        }
        return waiting.withLock { $0.removeFirst() }
    }
}

/// What a runner has reported last, so that it tells each turn once.
enum ReportedTurn: Hashable, Sendable {
    case nothing
    case caughtUp(SyncPoint)
    case waiting(until: ContinuousClock.Instant)
}

extension SyncCore {
    /// What is to be reported now, if it was not yet.
    func report(after last: ReportedTurn, at now: ContinuousClock.Instant) -> (turn: ReportedTurn, report: SyncReport?)
    {
        switch phase {
        case .idle, .signedOut, .greeting, .signingIn, .meeting: return (.nothing, nil)
        case .waiting(let until):
            guard last != .waiting(until: until), let trouble else { return (.waiting(until: until), nil) }
            return (.waiting(until: until), .interrupted(trouble, retryIn: max(until - now, .zero)))
        case .ready:
            if let until = round.pausedUntil {
                guard last != .waiting(until: until), let trouble else { return (.waiting(until: until), nil) }
                return (.waiting(until: until), .interrupted(trouble, retryIn: max(until - now, .zero)))
            }
            guard round.hasPulled, storing == 0 else {
                if case .waiting = last { return (.nothing, nil) }
                return (last, nil)
            }
            guard last != .caughtUp(point) else { return (last, nil) }
            return (.caughtUp(point), .caughtUp(point))
        }
    }
}
