/// Observing from the main actor: the callback touches what belongs to it, without a hop and without a warning.
extension GameStore {
    /// Observes the games of a type, on the main actor. See ``observe(_:where:sortedBy:on:_:)-(_,_,_,DispatchQueue?,_)``.
    ///
    /// ```swift
    /// let token = store.observe(Game.self, on: MainActor.shared) { change in
    ///     label.text = "\(change.elements?.count ?? 0) games"
    /// }
    /// ```
    /// - Parameters:
    ///   - type: the games' type.
    ///   - isIncluded: which games; all if left out. Called on a queue of the store's.
    ///   - orders: how they are sorted; what they leave equal, and all if left out, is by id.
    ///   - actor: `MainActor.shared`.
    ///   - callback: is told of each change, on the main queue.
    /// - Returns: what keeps the observation alive.
    public func observe<Game: Persistable>(
        _ type: Game.Type, where isIncluded: (@Sendable (Game) -> Bool)? = nil, sortedBy orders: GameOrder<Game>...,
        on actor: MainActor, _ callback: @escaping @MainActor (CollectionChange<Game>) -> Void
    ) -> ObservationToken {
        observe(query(isIncluded, orders), on: .main, Self.onMain(callback))
    }

    /// Observes the games of a type, but of their modifications only those of some properties, on the main actor.
    /// - Throws: ``StoreError`` `misuse` for a property that is not stored, or whose values cannot be compared.
    public func observe<Game: Persistable>(
        _ type: Game.Type, where isIncluded: (@Sendable (Game) -> Bool)? = nil, sortedBy orders: GameOrder<Game>...,
        keyPaths: [PartialKeyPath<Game> & Sendable], on actor: MainActor,
        _ callback: @escaping @MainActor (CollectionChange<Game>) -> Void
    ) throws(StoreError) -> ObservationToken {
        var query = query(isIncluded, orders)
        query.isSame = try StoredProperties(keyPaths).isSame
        return observe(query, on: .main, Self.onMain(callback))
    }

    /// Observes one game, whether it is there or not, on the main actor.
    public func observe<Game: Persistable>(
        _ type: Game.Type, id: String, on actor: MainActor,
        _ callback: @escaping @MainActor (ObjectChange<Game>) -> Void
    ) -> ObservationToken {
        observe(type, id: id, on: .main, Self.onMain(callback))
    }

    /// Observes one game, but of its modifications only those of some properties, on the main actor.
    /// - Throws: ``StoreError`` `misuse` for a property that is not stored, or whose values cannot be compared.
    public func observe<Game: Persistable>(
        _ type: Game.Type, id: String, keyPaths: [PartialKeyPath<Game> & Sendable], on actor: MainActor,
        _ callback: @escaping @MainActor (ObjectChange<Game>) -> Void
    ) throws(StoreError) -> ObservationToken {
        try observe(type, id: id, keyPaths: keyPaths, on: .main, Self.onMain(callback))
    }

    /// The main queue is the main actor's.
    private static func onMain<Change: Sendable>(
        _ callback: @escaping @MainActor (Change) -> Void
    ) -> @Sendable (Change) -> Void {
        { change in MainActor.assumeIsolated { callback(change) } }
    }
}
