import Dispatch
import Synchronization

/// What keeps an observation alive: hold it as long as the calls are wanted.
///
/// The observation ends with `invalidate()`, or when the last reference to the token goes. The token owns the callback and
/// lets it go then.
public final class ObservationToken: Sendable {
    private let ending: Mutex<(@Sendable () -> Void)?>
    let centre: ObservationCentre?
    let place: ObservationCentre.Place?
    /// The observer's side, for changes that it makes itself: see `SilentObserver`.
    let observer: (any SilentObserver)?

    init(
        centre: ObservationCentre? = nil, place: ObservationCentre.Place? = nil, observer: (any SilentObserver)? = nil,
        ending: @escaping @Sendable () -> Void
    ) {
        self.centre = centre
        self.place = place
        self.observer = observer
        self.ending = Mutex(ending)
    }

    deinit { end() }

    /// Ends the observation. Safe from any thread, inside the callback, and any number of times.
    ///
    /// Once it has returned, no call begins; one that is running on another queue meanwhile runs to its end.
    public func invalidate() { end() }

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
    func expect(id: String, change: Int64, value: (any Sendable)?)
    func withdraw(from change: Int64)
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
        let queue = queue ?? calls
        subscription.whenReady { [weak subscription] in
            guard let subscription else { return }
            queue.async {
                if let change = subscription.take() { callback(change) }
                subscription.rest()
            }
        }
        return token(for: subscription, in: collection, read: read)
    }

    /// Registers a subscription; the token ends it.
    func token<Element: Sendable>(
        for subscription: Subscription<Element>, in collection: String,
        read: @escaping @Sendable (Int64?) throws -> RowChanges<Element>,
        alsoEnding: @escaping @Sendable () -> Void = {}
    ) -> ObservationToken {
        let place = observe(subscription, in: collection, read: read)
        return ObservationToken(centre: self, place: place, observer: subscription) { [weak self] in
            subscription.end()
            self?.remove(place)
            alsoEnding()
        }
    }
}
