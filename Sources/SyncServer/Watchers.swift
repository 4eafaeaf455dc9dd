import Wire

/// Which sessions want to hear of which player's changes.
struct Watchers {
    private var byPlayer: [PlayerID: Sessions] = [:]

    /// How many sessions watch.
    private(set) var count = 0

    /// The players that are watched.
    var players: some Collection<PlayerID> { byPlayer.keys }

    mutating func add(_ session: ClientSession, of player: PlayerID) {
        let sessions = sessions(of: player)
        guard !sessions.contains(where: { $0 === session }) else { return }
        byPlayer[player] = sessions.isEmpty ? .one(session) : .several(sessions + [session])
        count += 1
    }

    mutating func remove(_ session: ClientSession, of player: PlayerID) {
        let sessions = sessions(of: player)
        let others = sessions.filter { $0 !== session }
        guard others.count < sessions.count else { return }
        byPlayer[player] = others.first.map { others.count == 1 ? .one($0) : .several(others) }
        count -= 1
    }

    /// The sessions that watch a player.
    func sessions(of player: PlayerID) -> Sessions { byPlayer[player] ?? .several([]) }

    /// A player's sessions. Most have one, which takes no array.
    enum Sessions: RandomAccessCollection {
        case one(ClientSession)
        case several([ClientSession])

        var startIndex: Int { 0 }

        var endIndex: Int {
            switch self {
            case .one: 1
            case .several(let sessions): sessions.count
            }
        }

        subscript(index: Int) -> ClientSession {
            switch self {
            case .one(let session): session
            case .several(let sessions): sessions[index]
            }
        }
    }
}
