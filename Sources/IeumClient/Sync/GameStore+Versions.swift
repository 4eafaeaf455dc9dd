import Wire

extension GameStore {
    /// The value that a version of the server's history holds, read as a stored one would be: a state of an older app is
    /// taken up by the store's migration.
    /// - Returns: nil when the version deletes the game.
    /// - Throws: ``StoreError`` when this app cannot read it, or when it is of another collection (`misuse`).
    public func object<Game: Persistable>(_ type: Game.Type, in version: SyncVersion) throws(StoreError) -> Game? {
        guard version.collection == Game.collection else {
            throw StoreError(
                .misuse, "a version of \(version.collection) \(version.id) was asked for as \(Game.self)",
                hint: "\(Game.self) is kept in \(Game.collection).")
        }
        guard let state = version.state else { return nil }
        return try decode(
            type,
            StoredGame(id: version.id, state: Array(state), schema: Int32(clamping: version.schemaVersion), change: 0))
    }
}
