import Wire

/// Takes a state that an older app saved up to the app's schema.
package typealias StateUpgrade =
    @Sendable (_ key: GameKey, _ state: PersistedState, _ schema: Int) throws ->
    PersistedState

/// Reads games over one connection.
struct StoreReader {
    let connection: SQLiteConnection
    let memory: StateMemory
    let schemaVersion: Int32
    let upgrade: StateUpgrade?
    let damaged: DamagedKeys

    func latest<Game: Persistable>(_ type: Game.Type) throws(StoreError) -> Game? {
        try first(
            type,
            """
            SELECT id, state, schema FROM games WHERE collection = ? AND state IS NOT NULL
             ORDER BY timestamp DESC, id DESC LIMIT 1
            """, [.text(Game.collection)])
    }

    func object<Game: Persistable>(_ type: Game.Type, id: String) throws(StoreError) -> Game? {
        let key = try Game.key(id)
        return try first(
            type, "SELECT id, state, schema FROM games WHERE collection = ? AND id = ? AND state IS NOT NULL",
            [.text(key.collection), .text(key.id)])
    }

    func objects<Game: Persistable>(_ type: Game.Type) throws(StoreError) -> [Game] {
        try rows(Game.collection).map { row throws(StoreError) in try decode(type, row) }
    }

    func count(_ collection: String) throws(StoreError) -> Int {
        Int(
            try connection.integer(
                "SELECT count(*) FROM games WHERE collection = ? AND state IS NOT NULL", .text(collection)) ?? 0)
    }

    /// All games of a collection by id, undecoded.
    func rows(_ collection: String) throws(StoreError) -> [StoredGame] {
        var games: [StoredGame] = []
        try connection.rows(
            """
            SELECT id, state, schema, change FROM games WHERE collection = ? AND state IS NOT NULL ORDER BY id
            """, [.text(collection)]
        ) { row in
            games.append(
                StoredGame(
                    id: row.text(0) ?? "", state: row.bytes(1) ?? [], schema: Int32(clamping: row.integer(2)),
                    change: row.integer(3)))
        }
        return games
    }

    func decode<Game: Persistable>(_ type: Game.Type, _ row: StoredGame) throws(StoreError) -> Game {
        let key = try Game.key(row.id)
        do throws(StoreError) {
            return try StateCoder.decode(type, id: row.id, current(key, row.state, schema: row.schema))
        } catch {
            if error.kind == .invalidState { damaged.note(key) }
            throw error
        }
    }

    /// A state of this app's schema.
    func current(_ key: GameKey, _ state: [UInt8], schema: Int32) throws(StoreError) -> [UInt8] {
        guard schema != schemaVersion else { return state }
        guard schema < schemaVersion else {
            throw StoreError.needsNewerApp(key, schema: Int(schema), known: Int(schemaVersion))
        }
        guard let upgrade else { return state }
        do {
            return try upgrade(key, PersistedState(json: state), Int(schema)).bytes
        } catch let error as StoreError {
            throw error
        } catch {
            throw StoreError(
                .migrationFailed, "\(key) cannot be taken from schema \(schema) to \(schemaVersion): \(error)",
                hint: "The game is kept as it is.")
        }
    }

    private func first<Game: Persistable>(_ type: Game.Type, _ sql: String, _ values: [SQLiteValue])
        throws(StoreError) -> Game?
    {
        var found: StoredGame?
        try connection.rows(sql, values) { row in
            found = StoredGame(
                id: row.text(0) ?? "", state: row.bytes(1) ?? [], schema: Int32(clamping: row.integer(2)), change: 0)
        }
        guard let found else { return nil }
        return try decode(type, found)
    }
}

/// A game as a row holds it.
package struct StoredGame: Hashable, Sendable {
    /// Which game of its collection.
    package var id: String
    /// The state's text.
    package var state: [UInt8]
    /// The schema of the app that saved it.
    package var schema: Int32
    /// Rises with every visible change of the game.
    package var change: Int64
}
