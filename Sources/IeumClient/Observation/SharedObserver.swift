import Dispatch

/// One observation that many screens share: each binds one closure, and is told that something changed.
///
/// ```swift
/// let games = store.sharedObserver(of: Game.self)
/// games.bind(HistoryScreen.self) { reload() }
/// ```
/// Calls come on the main queue, at `initial` and at every update; whoever binds later gets its first call soon after.
@MainActor
public final class SharedObserver {
    private var closures: [(owner: ObjectIdentifier, closure: @MainActor () -> Void)] = []
    private var token: ObservationToken?
    private var isLoaded = false

    /// The error that ended the observation, if one did.
    public private(set) var error: (any Error)?

    init<Element>(
        _ observe: (@escaping @Sendable (CollectionChange<Element>) -> Void) throws -> ObservationToken
    ) rethrows {
        token = try observe { [weak self] change in
            // Called on the main queue, which is the main actor's.
            MainActor.assumeIsolated { self?.receive(change) }
        }
    }

    /// Calls `closure` whenever something changed. A second closure of the same owner takes the first one's place.
    public func bind(_ owner: Any.Type, _ closure: @escaping @MainActor () -> Void) {
        let owner = ObjectIdentifier(owner)
        if let place = closures.firstIndex(where: { $0.owner == owner }) {
            closures[place].closure = closure
        } else {
            closures.append((owner, closure))
        }
        guard isLoaded else { return }
        DispatchQueue.main.async { [weak self] in
            MainActor.assumeIsolated { self?.call(owner) }
        }
    }

    /// Ends the calls of an owner; nothing happens where it has none.
    public func unbind(_ owner: Any.Type) {
        closures.removeAll { $0.owner == ObjectIdentifier(owner) }
    }

    private func receive<Element>(_ change: CollectionChange<Element>) {
        if case .error(let error) = change { self.error = error }
        isLoaded = true
        for (owner, _) in closures { call(owner) }  // a closure may bind and unbind; who is gone is not called
    }

    private func call(_ owner: ObjectIdentifier) {
        closures.first { $0.owner == owner }?.closure()
    }
}
