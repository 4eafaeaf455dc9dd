import Dispatch

extension GameStore {
    /// Observes the games of a type.
    ///
    /// ```swift
    /// let token = store.observe(Game.self, sortedBy: .descending(\.timestamp), on: .main) { change in
    ///     switch change {
    ///     case .initial(let games): show(games)
    ///     case .update(let games, let deletions, let insertions, let modifications, _): …
    ///     case .error(let error): report(error)
    ///     }
    /// }
    /// ```
    /// `initial` comes once, first, and never from inside this call. Saves, deletions, syncing and other processes are told
    /// alike; commits that were not delivered yet are told as one. The callback may read, write, observe and invalidate.
    /// This may be called inside a ``write(_:)``.
    /// - Parameters:
    ///   - type: the games' type.
    ///   - isIncluded: which games; all if left out. Called on a queue of the store's.
    ///   - orders: how they are sorted; what they leave equal, and all if left out, is by id.
    ///   - queue: where the callback is called, one call at a time; `nil`: a serial background queue that the store's
    ///     observers share. No run loop is needed.
    ///   - callback: is told of each change.
    /// - Returns: what keeps the observation alive.
    public func observe<Game: Persistable>(
        _ type: Game.Type, where isIncluded: (@Sendable (Game) -> Bool)? = nil, sortedBy orders: GameOrder<Game>...,
        on queue: DispatchQueue? = nil, _ callback: @escaping @Sendable (CollectionChange<Game>) -> Void
    ) -> ObservationToken {
        observe(query(isIncluded, orders), on: queue, callback)
    }

    /// Observes the games of a type, but of their modifications only those of some properties.
    ///
    /// What this observer names is its own affair: others of the same type see what they name. A game whose other
    /// properties changed is in the collection of the next call as it is then, without being one of its modifications.
    /// - Parameters:
    ///   - type: the games' type.
    ///   - isIncluded: which games; all if left out. Called on a queue of the store's.
    ///   - orders: how they are sorted; what they leave equal, and all if left out, is by id.
    ///   - keyPaths: properties of the type that are stored, or what is inside them.
    ///   - queue: where the callback is called, one call at a time; `nil`: a serial background queue of the store's.
    ///   - callback: is told of each change.
    /// - Throws: ``StoreError`` `misuse` for a property that is not stored, or whose values cannot be compared.
    public func observe<Game: Persistable>(
        _ type: Game.Type, where isIncluded: (@Sendable (Game) -> Bool)? = nil, sortedBy orders: GameOrder<Game>...,
        keyPaths: [PartialKeyPath<Game> & Sendable], on queue: DispatchQueue? = nil,
        _ callback: @escaping @Sendable (CollectionChange<Game>) -> Void
    ) throws(StoreError) -> ObservationToken {
        var query = query(isIncluded, orders)
        query.isSame = try StoredProperties(keyPaths).isSame
        return observe(query, on: queue, callback)
    }

    /// Observes one game, whether it is there or not.
    /// - Parameters:
    ///   - type: the game's type.
    ///   - id: which game of its type.
    ///   - queue: where the callback is called, one call at a time; `nil`: a serial background queue of the store's.
    ///   - callback: is told of each change.
    /// - Returns: what keeps the observation alive.
    public func observe<Game: Persistable>(
        _ type: Game.Type, id: String, on queue: DispatchQueue? = nil,
        _ callback: @escaping @Sendable (ObjectChange<Game>) -> Void
    ) -> ObservationToken {
        observe(ObservedQuery(id: id), on: queue) { (change: CollectionChange<Readable<Game>>) in
            callback(ObjectChange(change))
        }
    }

    /// Observes one game, but of its modifications only those of some properties.
    /// - Throws: ``StoreError`` `misuse` for a property that is not stored, or whose values cannot be compared.
    public func observe<Game: Persistable>(
        _ type: Game.Type, id: String, keyPaths: [PartialKeyPath<Game> & Sendable], on queue: DispatchQueue? = nil,
        _ callback: @escaping @Sendable (ObjectChange<Game>) -> Void
    ) throws(StoreError) -> ObservationToken {
        let isSame = try StoredProperties(keyPaths).isSame
        return observe(ObservedQuery(id: id, isSame: isSame), on: queue) { (change: CollectionChange<Readable<Game>>) in
            callback(ObjectChange(change))
        }
    }

    /// The changes of a type's games, for `for try await`. Each iteration is an observation of its own.
    public func changes<Game: Persistable>(
        of type: Game.Type, where isIncluded: (@Sendable (Game) -> Bool)? = nil, sortedBy orders: GameOrder<Game>...
    ) -> CollectionChanges<Game> {
        let query = query(isIncluded, orders)
        return CollectionChanges {
            CollectionChanges.Iterator(
                Subscription(query), as: { $0.map { try? $0.get() } },
                register: { self.register($0, alsoEnding: $1) })
        }
    }

    /// The games of a type for a view.
    @MainActor
    public func observed<Game: Persistable>(
        _ type: Game.Type, where isIncluded: (@Sendable (Game) -> Bool)? = nil, sortedBy orders: GameOrder<Game>...
    ) -> ObservedCollection<Game> {
        let query = query(isIncluded, orders)
        return ObservedCollection { self.observe(query, on: .main, $0) }
    }

    /// An observation of a type that many screens share. See ``SharedObserver``.
    @MainActor
    public func sharedObserver<Game: Persistable>(of type: Game.Type) -> SharedObserver {
        let query: ObservedQuery<Readable<Game>> = query(nil, [])
        return SharedObserver { (callback: @escaping @Sendable (CollectionChange<Game>) -> Void) in
            self.observe(query, on: .main, callback)
        }
    }

    // MARK: Saving what an observer knows

    /// Saves a value without telling some observers, who show it already. All others are told; and what follows is exact
    /// on top of it for these, too.
    public func save<Game: Persistable>(_ game: Game, withoutNotifying tokens: [ObservationToken]) throws {
        try write(withoutNotifying: tokens) { try $0.save(game) }
    }

    /// Deletes a game without telling some observers.
    /// - Returns: whether there was one.
    @discardableResult
    public func delete<Game: Persistable>(
        _ type: Game.Type, id: String, withoutNotifying tokens: [ObservationToken]
    ) throws -> Bool {
        try write(withoutNotifying: tokens) { try $0.delete(type, id: id) }
    }

    /// Does all that the closure does in one transaction, without telling some observers.
    public func write<Value>(
        withoutNotifying tokens: [ObservationToken], _ body: (StoreTransaction) throws -> Value
    ) throws -> Value {
        let centre = observers.centre(of: self)
        let tokens = tokens.filter { $0.centre === centre }
        var first: Int64?
        do {
            return try write { transaction in
                let value = try body(transaction)
                // Before the commit: no reader can have seen the rows when the observers learn to expect them.
                first = transaction.rows.values.min()
                try expect(transaction, tokens)
                return value
            }
        } catch {
            if let first {
                for token in tokens { token.withdraw(from: first) }
            }
            throw error
        }
    }

    private func expect(_ transaction: StoreTransaction, _ tokens: [ObservationToken]) throws(StoreError) {
        guard !tokens.isEmpty else { return }
        for (key, change) in transaction.rows.sorted(by: { $0.value < $1.value }) {
            var game: StoredGame?
            try transaction.connection.rows(
                "SELECT state, schema FROM games WHERE collection = ? AND id = ? AND state IS NOT NULL",
                [.text(key.collection), .text(key.id)]
            ) { row in
                game = StoredGame(
                    id: key.id, state: row.bytes(0) ?? [], schema: Int32(clamping: row.integer(1)), change: change)
            }
            for token in tokens where token.place.key.collection == key.collection {
                token.observer.expect(id: key.id, change: change, value: game.flatMap { token.value?($0) })
            }
        }
    }

    // MARK: Inside

    func query<Game: Persistable>(
        _ isIncluded: (@Sendable (Game) -> Bool)?, _ orders: [GameOrder<Game>]
    ) -> ObservedQuery<Readable<Game>> {
        var query = ObservedQuery<Readable<Game>>()
        query.isIncluded = { row in
            guard case .success(let game) = row else { return false }
            return isIncluded?(game) ?? true
        }
        guard !orders.isEmpty else { return query }
        query.isBefore = { left, right in
            guard case .success(let left) = left, case .success(let right) = right else { return false }
            for order in orders {
                let sign = order.compare(left, right)
                if sign != 0 { return sign < 0 }
            }
            return false
        }
        return query
    }

    func observe<Game: Persistable>(
        _ query: ObservedQuery<Readable<Game>>, on queue: DispatchQueue?,
        _ callback: @escaping @Sendable (CollectionChange<Game>) -> Void
    ) -> ObservationToken {
        observe(query, on: queue) { (change: CollectionChange<Readable<Game>>) in
            callback(change.map { try? $0.get() })
        }
    }

    private func observe<Game: Persistable>(
        _ query: ObservedQuery<Readable<Game>>, on queue: DispatchQueue?,
        _ callback: @escaping @Sendable (CollectionChange<Readable<Game>>) -> Void
    ) -> ObservationToken {
        let subscription = Subscription(query)
        subscription.deliver(on: queue ?? observers.centre(of: self).calls, callback)
        return register(subscription)
    }

    private func register<Game: Persistable>(
        _ subscription: Subscription<Readable<Game>>, alsoEnding: @escaping @Sendable () -> Void = {}
    ) -> ObservationToken {
        observers.centre(of: self).token(
            for: subscription, in: Game.collection, read: { try self.changes(of: Game.self, since: $0) },
            value: { self.readable($0) as Readable<Game> }, alsoEnding: alsoEnding)
    }
}

extension ObjectChange where Element: Persistable {
    fileprivate init(_ change: CollectionChange<Result<Element, StoreError>>) {
        switch change {
        case .initial(let rows):
            switch rows.first {
            case .success(let value)?: self = .initial(value)
            case .failure(let error)?: self = .unreadable(error)
            case nil: self = .initial(nil)
            }
        case .update(let rows, _, _, _, _):
            switch rows.first {
            case .success(let value)?: self = .update(value)
            case .failure(let error)?: self = .unreadable(error)
            case nil: self = .deleted
            }
        case .error(let error): self = .error(error)
        }
    }
}
