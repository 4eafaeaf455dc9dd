import EventLoop
import Postgres
import Wire

/// What one player may do at this daemon: how many connections, pushes and bytes a second, and how much there may be of his.
///
/// How much is stored is asked of PostgreSQL, not with every push but once a share of the limit may have come: a player can
/// be over it by that share, and by what other daemons take meanwhile. See ``Storage``.
final class PlayerLimits {
    static let usage = Statement(
        "player-usage",
        """
        SELECT (SELECT count(*) FROM games g
                  JOIN game_versions v ON v.player_id = g.player_id AND v.revision = g.head_revision
                 WHERE g.player_id = $1 AND v.size > 0),
               coalesce(sum(v.size), 0)::int8 + \(Storage.bytesOfVersion) * count(*), count(*) FILTER (WHERE v.size = 0)
          FROM game_versions v WHERE v.player_id = $1
        """, parameterTypes: [.uuid])
    /// A row where a game is there and not deleted.
    static let game = Statement(
        "game-is-there",
        """
        SELECT g.head_revision FROM games g JOIN game_versions v ON v.player_id = g.player_id AND v.revision = g.head_revision
         WHERE g.player_id = $1 AND g.collection = $2 AND g.game_id = $3 AND v.size > 0
        """, parameterTypes: [.uuid, .text, .text])

    /// What is to become of a push.
    enum Verdict {
        case taken
        /// It is taken if its game is there, since there are as many games as there may be.
        case takenIfGameIsThere
        case refused(WireError)
    }

    /// What a player who pushes has used up.
    private struct Standing {
        var pushes: TokenBucket
        var bytes: TokenBucket
        var storage: Storage

        init(at now: ContinuousClock.Instant, storage: Storage?) {
            pushes = TokenBucket(at: now)
            bytes = TokenBucket(at: now)
            self.storage = storage ?? Storage(at: now)
        }
    }

    private let limits: ServerConfiguration.Limits
    private let pool: DatabasePool
    private let usagePool: DatabasePool
    private let loop: EventLoop
    /// How many connections each has who is there.
    private var connections: [PlayerID: UInt32] = [:]
    /// Those who have something used up; who is there and pushes nothing takes no room in it.
    private var players: [PlayerID: Standing] = [:]
    /// What is known of players who are gone, so that nobody has a limit anew by coming again.
    private var absent = AbsentPlayers()
    /// Whether anything is bounded besides connections.
    private let boundsPushes: Bool

    /// - Parameters:
    ///   - pool: looks for games.
    ///   - usagePool: counts what there is of a player, which takes seconds where it is much; started when it is needed.
    init(_ limits: ServerConfiguration.Limits, pool: DatabasePool, usagePool: DatabasePool, loop: EventLoop) {
        self.limits = limits
        self.pool = pool
        self.usagePool = usagePool
        self.loop = loop
        boundsPushes =
            limits.pushesPerPlayer != nil || limits.bytesPerPlayer != nil || limits.maxGamesPerPlayer != nil
            || limits.maxStoredBytesPerPlayer != nil
    }

    /// Counts a signed-in connection in.
    /// - Returns: false when the player has as many as he may.
    func enter(_ player: PlayerID) -> Bool {
        let count = connections[player] ?? 0
        guard count < limits.maxConnectionsPerPlayer else { return false }
        connections[player] = count + 1
        // Of those who are there nothing is forgotten.
        if count == 0, let storage = absent.recall(player) {
            players[player] = Standing(at: loop.now, storage: storage)
        }
        return true
    }

    /// Whether the player has more connections than devices in use: the further ones yield to other players'.
    func hasManyConnections(_ player: PlayerID) -> Bool {
        connections[player].map { $0 > Self.fewConnections } ?? false
    }

    private static let fewConnections = 16

    /// Counts a signed-in connection out.
    func leave(_ player: PlayerID) {
        guard let count = connections[player] else { return }
        connections[player] = count > 1 ? count - 1 : nil
    }

    /// Whether a push may come now; what it takes is taken.
    func verdict(on push: Push, of player: PlayerID) -> Verdict {
        guard boundsPushes else { return .taken }
        let now = loop.now
        let size = push.state?.count ?? 0
        return withStanding(of: player) { standing in
            // All are looked at before one is taken: what is to come again costs nothing.
            if let rate = limits.bytesPerPlayer, let wait = standing.bytes.wait(for: Double(size), of: rate, at: now) {
                return .refused(.rateLimited("bytes of this player", retryAfter: wait))
            }
            if let rate = limits.pushesPerPlayer, let wait = standing.pushes.take(1, of: rate, at: now) {
                return .refused(.rateLimited("pushes of this player", retryAfter: wait))
            }
            // A push that will never be taken has cost one of the rate, so that sending it again and again is no faster.
            if standing.storage.mustAskAgain(at: now) { ask(&standing, player) }
            if standing.storage.isOverBytes(for: push) {
                return .refused(.quotaExceeded("bytes", limit: limits.maxStoredBytesPerPlayer ?? 0))
            }
            if let rate = limits.bytesPerPlayer { _ = standing.bytes.take(Double(size), of: rate, at: now) }
            standing.storage.add(push)
            if standing.storage.isDue(limits) { ask(&standing, player) }
            return standing.storage.isOverGames && push.state != nil ? .takenIfGameIsThere : .taken
        }
    }

    /// Looks whether a game is there; calls back once, with why a push of it is refused, or nil.
    func lookForGame(_ game: GameKey, of player: PlayerID, _ completion: @escaping (WireError?) -> Void) {
        var parameters = ParameterList()
        parameters.append(player.uuid)
        parameters.append(game.collection)
        parameters.append(game.id)
        pool.read(Self.game, parameters, of: player.uuid) { [limits] result in
            switch result {
            case .success(let rows) where rows.rowCount > 0: completion(nil)
            case .success: completion(.quotaExceeded("games", limit: limits.maxGamesPerPlayer ?? 0))
            case .failure(let error): completion(error.wireError)
            }
        }
    }

    /// Whether a history of so many bytes could become a player's at all: it is the whole of what there is of him.
    func refusal(ofHistoryWith bytes: Int) -> WireError? {
        guard let most = limits.maxStoredBytesPerPlayer, bytes > most else { return nil }
        return .quotaExceeded("bytes", limit: most)
    }

    /// What a part of a history costs of the player's bytes. It is never refused for that, but has to wait.
    /// - Returns: how long; nil: not at all, and what it takes is taken.
    func delay(ofHistoryWith bytes: Int, _ player: PlayerID) -> Duration? {
        guard let rate = limits.bytesPerPlayer else { return nil }
        return withStanding(of: player) { $0.bytes.take(Double(bytes), of: rate, at: loop.now) }
    }

    /// A history became the player's: the next push asks anew how much there is of him.
    func imported(_ player: PlayerID) {
        guard boundsPushes else { return }
        withStanding(of: player) { ask(&$0, player) }
    }

    /// Forgets the rates of players who are gone and have nothing of them used up.
    func sweep() {
        // Gathered first: changing what is walked would copy it.
        let gone = players.filter { connections[$0.key] == nil && isRested($0.value, at: loop.now) }
        for (player, standing) in gone {
            players[player] = nil
            absent.remember(player, standing.storage, share: standing.storage.share(of: limits))
        }
    }

    private func isRested(_ standing: Standing, at now: ContinuousClock.Instant) -> Bool {
        var standing = standing
        return (limits.pushesPerPlayer.map { standing.pushes.isFull($0, at: now) } ?? true)
            && (limits.bytesPerPlayer.map { standing.bytes.isFull($0, at: now) } ?? true)
            && !standing.storage.isAsking
    }

    private func withStanding<Result>(of player: PlayerID, _ body: (inout Standing) -> Result) -> Result {
        body(&players[player, default: Standing(at: loop.now, storage: absent.recall(player))])
    }

    // MARK: What is stored

    private func ask(_ standing: inout Standing, _ player: PlayerID) {
        guard standing.storage.beginAsking() else { return }
        var parameters = ParameterList()
        parameters.append(player.uuid)
        usagePool.start()
        usagePool.read(Self.usage, parameters, of: player.uuid) { [weak self] result in
            self?.answered(result, player)
        }
    }

    private func answered(_ result: Result<QueryResult, DatabaseError>, _ player: PlayerID) {
        var usage: (games: Int64, bytes: Int64, deletions: Int64)?
        if case .success(let rows) = result, rows.rowCount == 1, let games = try? rows.int8(0, 0),
            let bytes = try? rows.int8(0, 1), let deletions = try? rows.int8(0, 2)
        {
            usage = (games, bytes, deletions)
        }
        // Where the database does not answer, pushes do not arrive either: what was known stands.
        withStanding(of: player) { $0.storage.answered(usage, limits, at: loop.now) }
    }
}
