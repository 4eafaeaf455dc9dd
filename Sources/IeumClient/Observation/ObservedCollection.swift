import Observation

/// A collection for a view: `elements` follows the store, on the main actor.
///
/// ```swift
/// let games = store.observed(Game.self)
/// ForEach(games.elements) { … }
/// ```
@MainActor
@Observable
public final class ObservedCollection<Element: Sendable> {
    /// The collection as it was delivered last; empty until `isLoaded`.
    public private(set) var elements: [Element] = []
    /// Whether the initial collection has come.
    public private(set) var isLoaded = false
    /// The error that ended the observation, if one did; `elements` stays as it was.
    public private(set) var error: (any Error)?

    @ObservationIgnored private var token: ObservationToken?

    init(_ observe: (@escaping @Sendable (CollectionChange<Element>) -> Void) throws -> ObservationToken) rethrows {
        token = try observe { [weak self] change in
            // Called on the main queue, which is the main actor's.
            MainActor.assumeIsolated { self?.receive(change) }
        }
    }

    private func receive(_ change: CollectionChange<Element>) {
        switch change {
        case .initial(let elements), .update(let elements, _, _, _, _):
            self.elements = elements
            isLoaded = true
        case .error(let error):
            self.error = error
        }
    }
}
