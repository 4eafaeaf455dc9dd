import Wire

/// What a reader of raw states asks a store for, past the games' types.
extension GameStore {
    /// Whose games are in it; nil when there are none, or no server was met yet.
    package func owner() throws -> PlayerID? {
        try read { reader in
            guard try reader.connection.integer("SELECT EXISTS (SELECT 1 FROM games)") == 1 else { return nil }
            return try reader.connection.text("SELECT value FROM meta WHERE key = 'player'").flatMap { PlayerID($0) }
        }
    }
}
