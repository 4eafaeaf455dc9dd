import Dispatch
import Synchronization

/// What keeps an observation alive: hold it as long as the calls are wanted.
///
/// The observation ends with `invalidate()`, or when the last reference to the token goes. The token owns the callback and
/// lets it go then.
public final class ObservationToken: Sendable {
    private let ending: Mutex<(@Sendable () -> Void)?>
    let centre: ObservationCentre
    let place: ObservationCentre.Place
    /// The observer's side, for changes that it makes itself: see `SilentObserver`.
    let observer: any SilentObserver
    /// What the observer holds of a stored row.
    let value: (@Sendable (StoredGame) -> any Sendable)?

    init(
        centre: ObservationCentre, place: ObservationCentre.Place, observer: any SilentObserver,
        value: (@Sendable (StoredGame) -> any Sendable)?, ending: @escaping @Sendable () -> Void
    ) {
        self.centre = centre
        self.place = place
        self.observer = observer
        self.value = value
        self.ending = Mutex(ending)
    }

    deinit { end() }

    /// Ends the observation. Safe from any thread, inside the callback, and any number of times.
    ///
    /// Once it has returned, no call begins; one that is running on another queue meanwhile runs to its end.
    public func invalidate() { end() }

    /// Takes back what was expected from a change number on: the transaction was rolled back.
    func withdraw(from change: Int64) {
        observer.withdraw(from: change)
        centre.remind(place)
    }

    private func end() {
        let ending = ending.withLock { ending in
            defer { ending = nil }
            return ending
        }
        ending?()
    }
}

/// An observer that may be told beforehand of rows that it commits itself.
protocol SilentObserver: Sendable {
    /// Without a value, the row is deleted.
    func expect(id: String, change: Int64, value: (any Sendable)?)
    func withdraw(from change: Int64)
}

extension Subscription {
    /// Calls a closure for each change, on a queue, one call at a time.
    func deliver(on queue: DispatchQueue, _ callback: @escaping @Sendable (CollectionChange<Element>) -> Void) {
        whenReady { [weak self] in
            guard let self else { return }
            queue.async {
                if let change = self.take() { callback(change) }
                self.rest()
            }
        }
    }
}

extension Subscription: SilentObserver {
    func expect(id: String, change: Int64, value: (any Sendable)?) {
        guard value == nil || value is Element else { return }
        expect(RowChanges.Row(id: id, change: change, value: value as? Element))
    }
}

extension ObservationCentre {
    /// Observes rows with a callback: `initial` first, once, never before this returns to a queue that is busy with it.
    package func observe<Element: Sendable>(
        _ query: ObservedQuery<Element>, in collection: String, on queue: DispatchQueue?,
        read: @escaping @Sendable (Int64?) throws -> RowChanges<Element>,
        _ callback: @escaping @Sendable (CollectionChange<Element>) -> Void
    ) -> ObservationToken {
        let subscription = Subscription(query)
        subscription.deliver(on: queue ?? calls, callback)
        return token(for: subscription, in: collection, read: read)
    }

    /// Registers a subscription; the token ends it.
    func token<Element: Sendable>(
        for subscription: Subscription<Element>, in collection: String,
        read: @escaping @Sendable (Int64?) throws -> RowChanges<Element>,
        value: (@Sendable (StoredGame) -> any Sendable)? = nil, alsoEnding: @escaping @Sendable () -> Void = {}
    ) -> ObservationToken {
        let place = observe(subscription, in: collection, read: read)
        return ObservationToken(centre: self, place: place, observer: subscription, value: value) { [weak self] in
            subscription.end()
            self?.remove(place)
            alsoEnding()
        }
    }
}
