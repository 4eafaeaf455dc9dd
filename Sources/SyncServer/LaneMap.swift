import Wire

/// Which lane carries which player's pushes: the one place that decides it.
///
/// A player belongs to one lane, so at most one batch of a player's pushes is under way. On one PostgreSQL the players
/// are spread over the lanes by their id. On a distributed database this is where ranges of `uuid_hash(player_id)` would
/// name the lane of a shard's server.
struct LaneMap {
    /// How many lanes there are, at least one.
    let count: Int

    /// The lane of a player: 0 ..< count.
    func lane(of player: PlayerID) -> Int {
        // The last bytes of a random UUID are random; version and variant bits are elsewhere.
        let word = player.uuid.words.low & 0xFFFF_FFFF
        return Int((word * UInt64(count)) >> 32)
    }
}
