import Wire

/// Which sessions want to hear of which player's changes.
struct Watchers {
    private var byPlayer: [PlayerID: [ClientSession]] = [:]

    /// How many sessions watch.
    private(set) var count = 0

    /// The players that are watched.
    var players: some Collection<PlayerID> { byPlayer.keys }

    mutating func add(_ session: ClientSession, of player: PlayerID) {
        guard byPlayer[player]?.contains(where: { $0 === session }) != true else { return }
        byPlayer[player, default: []].append(session)
        count += 1
    }

    mutating func remove(_ session: ClientSession, of player: PlayerID) {
        guard let index = byPlayer[player]?.firstIndex(where: { $0 === session }) else { return }
        byPlayer[player]?.remove(at: index)
        count -= 1
        if byPlayer[player]?.isEmpty == true { byPlayer[player] = nil }
    }

    /// The sessions that watch a player.
    func sessions(of player: PlayerID) -> [ClientSession] { byPlayer[player] ?? [] }
}
