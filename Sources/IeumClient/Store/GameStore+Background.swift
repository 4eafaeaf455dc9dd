import Dispatch

extension GameStore {
    /// The store's calls for `await`: the work is done on a queue of the store's, and no thread of the caller's waits.
    public var background: Background { Background(store: self) }

    /// The asynchronous form of a ``GameStore``.
    public struct Background: Sendable {
        let store: GameStore

        /// See ``GameStore/save(_:)-(Game)``.
        public func save(_ game: some Persistable) async throws {
            try await run { try $0.save(game) }
        }

        /// See `save(_:)` of several games in ``GameStore``.
        public func save<Game: Persistable>(_ games: some Sequence<Game> & Sendable) async throws {
            try await run { try $0.save(games) }
        }

        /// See ``GameStore/delete(_:id:)``.
        @discardableResult
        public func delete<Game: Persistable>(_ type: Game.Type, id: String) async throws -> Bool {
            try await run { try $0.delete(type, id: id) }
        }

        /// See ``GameStore/write(_:)``.
        public func write<Value: Sendable>(
            _ body: @escaping @Sendable (StoreTransaction) throws -> Value
        ) async throws -> Value {
            try await run { try $0.write(body) }
        }

        /// See ``GameStore/latest(_:)``.
        public func latest<Game: Persistable>(_ type: Game.Type) async throws -> Game? {
            try await run { try $0.latest(type) }
        }

        /// See ``GameStore/object(_:id:)``.
        public func object<Game: Persistable>(_ type: Game.Type, id: String) async throws -> Game? {
            try await run { try $0.object(type, id: id) }
        }

        /// See ``GameStore/objects(_:where:sortedBy:)``.
        public func objects<Game: Persistable>(
            _ type: Game.Type, where isIncluded: @escaping @Sendable (Game) throws -> Bool = { _ in true },
            sortedBy orders: GameOrder<Game>...
        ) async throws -> [Game] {
            try await run { GameOrder.sort(try $0.objects(type, where: isIncluded), by: orders) }
        }

        /// See ``GameStore/count(_:)``.
        public func count<Game: Persistable>(_ type: Game.Type) async throws -> Int {
            try await run { try $0.count(type) }
        }

        private func run<Value: Sendable>(
            _ body: @escaping @Sendable (GameStore) throws -> Value
        ) async throws -> Value {
            let store = store
            return try await withCheckedThrowingContinuation { continuation in
                DispatchQueue.global().async { continuation.resume(with: Result { try body(store) }) }
            }
        }
    }
}
