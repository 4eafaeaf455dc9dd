import Synchronization

/// One type's collection, read once for everyone who observes it.
///
/// Only rows that changed since the last reading are read and decoded, in one snapshot of the store; a page of 10,000 rows
/// in one transaction is one reading. Refreshing is confined to the centre's queue.
final class ObservationFeed<Element: Sendable>: RefreshableFeed {
    private struct State: Sendable {
        var snapshot: ObservedSnapshot<Element>?
        var observers: [UInt64: Subscription<Element>] = [:]
        /// Those that have not been offered a snapshot yet, or must be offered one again.
        var waiting: Set<UInt64> = []
    }

    private let read: @Sendable (Int64?) throws -> RowChanges<Element>
    private let state = Mutex(State())

    /// - Parameter read: reads what changed after a change number (`nil`: everything).
    init(read: @escaping @Sendable (Int64?) throws -> RowChanges<Element>) {
        self.read = read
    }

    func add(_ subscription: Subscription<Element>, as number: UInt64) {
        state.withLock { state in
            state.observers[number] = subscription
            _ = state.waiting.insert(number)
        }
    }

    func remove(_ number: UInt64) -> Bool {
        state.withLock { state in
            state.waiting.remove(number)
            state.observers[number] = nil
            return state.observers.isEmpty
        }
    }

    func remind(_ number: UInt64) {
        state.withLock { state in
            if state.observers[number] != nil { state.waiting.insert(number) }
        }
    }

    func refresh() {
        let known = state.withLock { $0.snapshot }
        do {
            let changes = try read(known?.upTo)
            var snapshot = known ?? ObservedSnapshot()
            let isNews = known == nil || changes.isWhole || !changes.rows.isEmpty
            if isNews { snapshot.take(changes) } else { snapshot.upTo = changes.upTo }
            let offered = state.withLock { state in
                state.snapshot = snapshot
                defer { state.waiting.removeAll() }
                return isNews ? Array(state.observers.values) : state.waiting.compactMap { state.observers[$0] }
            }
            for observer in offered { observer.offer(snapshot) }
        } catch {
            // Each of them hears of it once, and nothing after it; whoever observes from now on begins anew.
            let observers = state.withLock { state in
                defer { state = State() }
                return Array(state.observers.values)
            }
            for observer in observers { observer.fail(error) }
        }
    }
}
