import Synchronization

/// One observer's side of a collection: what it was told last, and what it is to be told next.
///
/// There is at most one pending change. A newer snapshot replaces it with the difference to what was *delivered*, so commits
/// merge for an observer that is slow, and what cancels out is never told. Predicates, orders and callbacks of the app run
/// outside the lock.
final class Subscription<Element: Sendable>: Sendable {
    private enum Pending: Sendable {
        case initial([ObservedRow<Element>])
        case update([ObservedRow<Element>], CollectionDiff)

        var rows: [ObservedRow<Element>] {
            switch self {
            case .initial(let rows), .update(let rows, _): rows
            }
        }
    }

    private struct State: Sendable {
        var delivered: [ObservedRow<Element>]?
        /// Rises whenever `delivered` or `expected` changes, so that a difference computed without the lock is not outdated.
        var generation = 0
        var pending: Pending?
        var failure: (any Error)?
        var isSignalled = false
        var hasEnded = false
        /// Snapshots that end before this change number are too old for this observer.
        var floor: Int64 = .min
        /// Rows that the observer made itself and is not told of, in the order of their change numbers.
        var expected: [RowChanges<Element>.Row] = []
        var onReady: (@Sendable () -> Void)?
    }

    private let query: ObservedQuery<Element>
    private let state = Mutex(State())

    init(_ query: ObservedQuery<Element>) {
        self.query = query
    }

    /// Sets what is called when there is something to take; never under a lock. Called once, before the first offer.
    func whenReady(_ onReady: @escaping @Sendable () -> Void) {
        state.withLock { $0.onReady = onReady }
    }

    /// Compares a newer snapshot with what was delivered. Called by one thread at a time, with rising snapshots.
    func offer(_ snapshot: ObservedSnapshot<Element>) {
        let rows = query.apply(to: snapshot.rows)
        while true {
            let seen = state.withLock { state in
                state.hasEnded || snapshot.upTo < state.floor
                    ? nil : (generation: state.generation, delivered: state.delivered, expected: state.expected)
            }
            guard let seen else { return }
            let known = seen.delivered.map { applying(seen.expected, to: $0) }
            let pending: Pending? =
                if let known {
                    { $0.isEmpty ? nil : .update(rows, $0) }(query.difference(from: known, to: rows))
                } else {
                    .initial(rows)
                }
            let signal: (isDone: Bool, onReady: (@Sendable () -> Void)?) = state.withLock { state in
                guard !state.hasEnded, state.generation == seen.generation else { return (state.hasEnded, nil) }
                if !seen.expected.isEmpty {
                    state.expected.removeAll()
                    state.generation += 1
                }
                // Without a difference the newer rows stand for the old ones: what this observer ignores is not kept.
                if let known { state.delivered = pending == nil ? rows : known }
                state.pending = pending
                guard pending != nil, !state.isSignalled else { return (true, nil) }
                state.isSignalled = true
                return (true, state.onReady)
            }
            signal.onReady?()
            if signal.isDone { return }
        }
    }

    /// Ends the observation with an error, after what is pending.
    func fail(_ error: any Error) {
        let onReady: (@Sendable () -> Void)? = state.withLock { state in
            guard !state.hasEnded, state.failure == nil else { return nil }
            state.failure = error
            guard !state.isSignalled else { return nil }
            state.isSignalled = true
            return state.onReady
        }
        onReady?()
    }

    /// Takes the next change: from here on it counts as delivered. `nil`: nothing to tell, or it has ended.
    func take() -> CollectionChange<Element>? {
        let taken: (Pending?, (any Error)?) = state.withLock { state in
            guard !state.hasEnded else { return (nil, nil) }
            if let pending = state.pending {
                state.pending = nil
                state.delivered = pending.rows
                state.generation += 1
                return (pending, nil)
            }
            guard let failure = state.failure else { return (nil, nil) }
            state.hasEnded = true
            state.delivered = nil
            return (nil, failure)
        }
        switch taken {
        case (.initial(let rows)?, _): return .initial(rows.map(\.value))
        case (.update(let rows, let diff)?, _):
            return .update(
                rows.map(\.value), deletions: diff.deletions, insertions: diff.insertions,
                modifications: diff.modifications, modificationsNew: diff.modificationsNew)
        case (nil, let failure?): return .error(failure)
        case (nil, nil): return nil
        }
    }

    /// Says that a taken change has been dealt with; signals again where another one waits.
    func rest() {
        let onReady: (@Sendable () -> Void)? = state.withLock { state in
            state.isSignalled = !state.hasEnded && (state.pending != nil || state.failure != nil)
            return state.isSignalled ? state.onReady : nil
        }
        onReady?()
    }

    /// Nothing can be taken once this has returned. Safe from any thread, any number of times.
    func end() {
        let dropped = state.withLock { state in
            let dropped = state
            state = State(isSignalled: true, hasEnded: true)
            return dropped
        }
        _ = consume dropped  // the app's objects go without the lock
    }

    /// Says that the observer itself is about to commit a row with this change number, and knows it.
    ///
    /// What was pending does not fit the observer's collection any longer: a snapshot that holds the row replaces it.
    func expect(_ row: RowChanges<Element>.Row) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.expected.append(row)
            state.floor = max(state.floor, row.change)
            state.pending = nil
            state.generation += 1
        }
    }

    /// Takes back `expect` for rows from a change number on: their transaction was rolled back.
    func withdraw(from change: Int64) {
        state.withLock { state in
            state.expected.removeAll { $0.change >= change }
            state.floor = state.expected.last?.change ?? .min
            state.generation += 1
        }
    }

    /// The delivered rows as the observer has them after its own commits.
    private func applying(
        _ expected: [RowChanges<Element>.Row], to delivered: [ObservedRow<Element>]
    ) -> [ObservedRow<Element>] {
        guard !expected.isEmpty else { return delivered }
        var newest: [String: RowChanges<Element>.Row] = [:]
        for row in expected { newest[row.id] = row }
        var rows = delivered.filter { newest[$0.id] == nil }
        for row in newest.values {
            if let value = row.value { rows.append(ObservedRow(id: row.id, change: row.change, value: value)) }
        }
        return query.apply(to: rows.sorted { $0.id < $1.id })
    }
}
