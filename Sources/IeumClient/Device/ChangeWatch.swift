import Wire

/// Hands out the games that change, until told to stop; comes back after the connection broke.
///
/// It starts where the home's last pull ended, and leaves the home's cursor where it is: what it shows, a pull brings too.
package struct ChangeWatch {
    /// What happens besides changes.
    package enum Event: Hashable, Sendable {
        /// It watches from this revision on.
        case watching(since: Revision)
        /// The server was restored: everything is handed out anew.
        case startedOver
        /// The connection is gone, or could not be made; the next try is after this time.
        case interrupted(ClientError, retryIn: Duration)
    }

    /// What the watch ended by.
    package enum End: Hashable, Sendable {
        /// The one change that was waited for came.
        case changed
        /// The time is over.
        case timedOut
    }

    /// Whose games.
    package var home: DeviceHome
    /// Where to start; nil: where the home's last pull ended.
    package var since: Revision?
    /// Whether to end after the first change.
    package var isOnce: Bool
    /// When to end; nil: never.
    package var deadline: ContinuousClock.Instant?
    /// How long to wait for answers.
    package var patience: ServerConnection.Patience
    /// After how much silence to ask whether the server is still there.
    package var heartbeat: Duration
    /// How long to wait between tries.
    package var backoff: Backoff

    /// Prepares a watch.
    package init(
        home: DeviceHome, since: Revision? = nil, isOnce: Bool = false, deadline: ContinuousClock.Instant? = nil,
        patience: ServerConnection.Patience = .init(), heartbeat: Duration = .seconds(15), backoff: Backoff = Backoff()
    ) {
        self.home = home
        self.since = since
        self.isOnce = isOnce
        self.deadline = deadline
        self.patience = patience
        self.heartbeat = heartbeat
        self.backoff = backoff
    }

    /// Watches.
    /// - Throws: ``HomeError``; ``ClientError`` that a retry cannot mend; what `handOut` throws.
    package func run(tell: (Event) -> Void, _ handOut: ([GameVersion]) throws -> Void) throws -> End {
        var cursor = try since ?? home.seen().cursor
        var backoff = backoff
        var random = SystemRandomNumberGenerator()
        while true {
            do {
                return try watch(&cursor, &backoff, tell, handOut)
            } catch let error as ClientError where error.isRetryable {
                let wait = backoff.next(atLeast: error.retryAfter, using: &random)
                if let deadline, .now + wait >= deadline {
                    // There is no use in another try; a watch that never came about says why.
                    throw error
                }
                tell(.interrupted(error, retryIn: wait))
                pause(wait)
            }
        }
    }

    private func watch(
        _ cursor: inout Revision, _ backoff: inout Backoff, _ tell: (Event) -> Void,
        _ handOut: ([GameVersion]) throws -> Void
    ) throws -> End {
        let device = try SignedInDevice(home: home, patience: patience)
        if device.isEpochNew, cursor > 0 {
            cursor = 0
            tell(.startedOver)
        }
        do throws(ClientError) {
            try device.connection.watch(since: cursor)
        } catch {
            guard since == nil, case .server(let refusal) = error, refusal.code == .cursorAhead else { throw error }
            cursor = 0
            tell(.startedOver)
            try device.connection.watch(since: cursor)
        }
        backoff.reset()
        tell(.watching(since: cursor))
        while true {
            let rest = deadline.map { $0 - .now } ?? heartbeat
            guard rest > .zero else { return .timedOut }
            guard let revision = try device.connection.nextChange(within: min(rest, heartbeat)) else {
                if rest > heartbeat || deadline == nil { _ = try device.connection.ping() }
                continue
            }
            var hasMore = revision > cursor
            var hasChanged = false
            while hasMore {
                let page = try device.connection.pull(since: cursor)
                try handOut(page.games)
                hasChanged = hasChanged || !page.games.isEmpty
                (cursor, hasMore) = (page.cursor, page.hasMore)
            }
            if isOnce, hasChanged { return .changed }
        }
    }
}

extension ClientError {
    /// How long the server asked to wait.
    package var retryAfter: Duration? {
        switch self {
        case .server(let error), .connectionClosed(let error?): error.retryAfter
        default: nil
        }
    }
}
