import EventLoop
import Postgres
import Wire

/// What one player may do at this daemon: how many connections, pushes and bytes a second, and how much there may be of his.
///
/// How much is stored is asked of PostgreSQL, not with every push but once a share of the limit may have come: a player can
/// be over it by that share, and by what other daemons take meanwhile.
final class PlayerLimits {
    static let usage = Statement(
        "player-usage",
        """
        SELECT (SELECT count(*) FROM games g
                  JOIN game_versions v ON v.player_id = g.player_id AND v.revision = g.head_revision
                 WHERE g.player_id = $1 AND v.size > 0),
               (SELECT coalesce(sum(v.size), 0)::int8 FROM game_versions v WHERE v.player_id = $1)
        """, parameterTypes: [.uuid])
    /// How long the answer holds for a player who is over a limit.
    private static let recheck = Duration.seconds(30)

    private struct Standing {
        var connections = 0
        var pushes: TokenBucket
        var bytes: TokenBucket
        /// Since the last look at what is stored.
        var newPushes = 0
        var newBytes = 0
        var isAsking = false
        /// Whether there are as many games, or bytes, as there may be.
        var isOverGames = false
        var isOverBytes = false
        var nextCheck: ContinuousClock.Instant

        init(at now: ContinuousClock.Instant) {
            pushes = TokenBucket(at: now)
            bytes = TokenBucket(at: now)
            nextCheck = now
        }
    }

    private let limits: ServerConfiguration.Limits
    private let pool: DatabasePool
    private let loop: EventLoop
    private var players: [PlayerID: Standing] = [:]
    /// Whether anything is bounded besides connections.
    private let boundsPushes: Bool

    init(_ limits: ServerConfiguration.Limits, pool: DatabasePool, loop: EventLoop) {
        self.limits = limits
        self.pool = pool
        self.loop = loop
        boundsPushes =
            limits.pushesPerPlayer != nil || limits.bytesPerPlayer != nil || limits.maxGamesPerPlayer != nil
            || limits.maxStoredBytesPerPlayer != nil
    }

    /// How many players are kept in mind.
    var count: Int { players.count }

    /// Counts a signed-in connection in.
    /// - Returns: false when the player has as many as he may.
    func enter(_ player: PlayerID) -> Bool {
        let count = players[player]?.connections ?? 0
        guard count < limits.maxConnectionsPerPlayer else { return false }
        players[player, default: Standing(at: loop.now)].connections = count + 1
        return true
    }

    /// Whether the player has more connections than devices in use: the further ones yield to other players'.
    func hasManyConnections(_ player: PlayerID) -> Bool {
        players[player].map { $0.connections > Self.fewConnections } ?? false
    }

    private static let fewConnections = 16

    /// Counts a signed-in connection out.
    func leave(_ player: PlayerID) {
        guard let count = players[player]?.connections else { return }
        players[player]?.connections = count - 1
    }

    /// Whether a push may come now; what it takes is taken.
    func refusal(of push: Push, _ player: PlayerID) -> WireError? {
        guard boundsPushes else { return nil }
        let now = loop.now
        let size = push.state?.count ?? 0
        return withStanding(of: player) { standing in
            // All are looked at before one is taken: what is to come again costs nothing.
            if let rate = limits.bytesPerPlayer, let wait = standing.bytes.wait(for: Double(size), of: rate, at: now) {
                return .rateLimited("bytes of this player", retryAfter: wait)
            }
            if let rate = limits.pushesPerPlayer, let wait = standing.pushes.take(1, of: rate, at: now) {
                return .rateLimited("pushes of this player", retryAfter: wait)
            }
            // A push that will never be taken has cost one of the rate, so that sending it again and again is no faster.
            if standing.isOverBytes, push.state != nil { return overBytes(&standing, player, now) }
            if standing.isOverGames, push.state != nil, (push.base ?? 0) == 0 {
                return overGames(&standing, player, now)
            }
            if let rate = limits.bytesPerPlayer { _ = standing.bytes.take(Double(size), of: rate, at: now) }
            standing.newPushes += 1
            standing.newBytes += size
            if isDue(standing) { ask(&standing, player) }
            return nil
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

    /// Forgets players who are gone and have nothing used up.
    func sweep() {
        // Gathered first: changing what is walked would copy it.
        let forgotten = players.filter { $0.value.connections <= 0 && isUnused($0.value, at: loop.now) }.map(\.key)
        for player in forgotten { players[player] = nil }
    }

    /// Whether a new standing would be the same.
    private func isUnused(_ standing: Standing, at now: ContinuousClock.Instant) -> Bool {
        var standing = standing
        let areFull =
            (limits.pushesPerPlayer.map { standing.pushes.isFull($0, at: now) } ?? true)
            && (limits.bytesPerPlayer.map { standing.bytes.isFull($0, at: now) } ?? true)
        let isWithin = !(standing.isOverGames || standing.isOverBytes) || now >= standing.nextCheck
        return areFull && isWithin && !standing.isAsking
    }

    private func withStanding<Result>(of player: PlayerID, _ body: (inout Standing) -> Result) -> Result {
        body(&players[player, default: Standing(at: loop.now)])
    }

    // MARK: What is stored

    private func isDue(_ standing: Standing) -> Bool {
        if let most = limits.maxGamesPerPlayer, standing.newPushes > most / 16 { return true }
        if let most = limits.maxStoredBytesPerPlayer, standing.newBytes > most / 16 { return true }
        return false
    }

    private func overBytes(_ standing: inout Standing, _ player: PlayerID, _ now: ContinuousClock.Instant) -> WireError
    {
        if now >= standing.nextCheck { ask(&standing, player) }
        return .quotaExceeded("bytes", limit: limits.maxStoredBytesPerPlayer ?? 0)
    }

    private func overGames(_ standing: inout Standing, _ player: PlayerID, _ now: ContinuousClock.Instant) -> WireError
    {
        if now >= standing.nextCheck { ask(&standing, player) }
        return .quotaExceeded("games", limit: limits.maxGamesPerPlayer ?? 0)
    }

    private func ask(_ standing: inout Standing, _ player: PlayerID) {
        guard !standing.isAsking else { return }
        standing.isAsking = true
        standing.newPushes = 0
        standing.newBytes = 0
        var parameters = ParameterList()
        parameters.append(player.uuid)
        pool.read(Self.usage, parameters, of: player.uuid) { [weak self] result in
            self?.answered(result, player)
        }
    }

    private func answered(_ result: Result<QueryResult, DatabaseError>, _ player: PlayerID) {
        withStanding(of: player) { standing in
            standing.isAsking = false
            standing.nextCheck = loop.now + Self.recheck
            // Where the database does not answer, pushes do not arrive either: what was known stands.
            guard case .success(let rows) = result, rows.rowCount == 1, let games = try? rows.int8(0, 0),
                let bytes = try? rows.int8(0, 1)
            else { return }
            standing.isOverGames = limits.maxGamesPerPlayer.map { games >= $0 } ?? false
            standing.isOverBytes = limits.maxStoredBytesPerPlayer.map { bytes >= $0 } ?? false
        }
    }
}
