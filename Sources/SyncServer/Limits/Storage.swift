import Wire

/// What is known of how much there is of one player, against what there may be.
///
/// A pure value. Every push is counted until a sixteenth of a limit may have come; then PostgreSQL is asked. A version counts as its
/// state and ``bytesOfVersion``, so that many small ones, and deletions, are bounded too.
struct Storage {
    /// What a version takes in tables and indexes besides its state.
    static let bytesOfVersion = 512
    /// What a device of a history that is imported takes.
    static let bytesOfDevice = 256
    /// How long an answer holds for a player who is over a limit.
    private static let recheck = Duration.seconds(30)

    /// Since PostgreSQL was asked last.
    private var newPushes = 0
    private var newBytes = 0
    /// Whether an answer is on its way.
    private(set) var isAsking = false
    /// Whether there are as many games, or bytes, as there may be.
    private(set) var isOverGames = false
    private var isOverBytes = false
    /// Whether those that are deletions have come to the eighth of the limit that is kept for them.
    private var isReserveUsedUp = false
    private var nextCheck: ContinuousClock.Instant

    init(at now: ContinuousClock.Instant) {
        nextCheck = now
    }

    /// Whether a push is refused since there are too many bytes. A deletion has a reserve, however far over the limit the bytes
    /// are: it makes room among the games.
    func isOverBytes(for push: Push) -> Bool {
        isOverBytes && (push.state != nil || isReserveUsedUp)
    }

    /// Counts a push.
    mutating func add(_ push: Push) {
        newPushes += 1
        newBytes += (push.state?.count ?? 0) + Self.bytesOfVersion
    }

    /// Whether so much may have come that PostgreSQL is to be asked.
    func isDue(_ limits: ServerConfiguration.Limits) -> Bool { share(of: limits) > 1.0 / 16 }

    /// Whether a player who was over a limit may be within it by now.
    func mustAskAgain(at now: ContinuousClock.Instant) -> Bool { (isOverGames || isOverBytes) && now >= nextCheck }

    /// Which share of a limit may have come since PostgreSQL was asked, or 1 for a player who was over it.
    func share(of limits: ServerConfiguration.Limits) -> Double {
        guard !isOverGames, !isOverBytes else { return 1 }
        let games = limits.maxGamesPerPlayer.map { Double(newPushes) / Double($0) } ?? 0
        let bytes = limits.maxStoredBytesPerPlayer.map { Double(newBytes) / Double($0) } ?? 0
        return max(games, bytes)
    }

    /// Begins to count anew.
    /// - Returns: false when an answer is on its way already.
    mutating func beginAsking() -> Bool {
        guard !isAsking else { return false }
        isAsking = true
        newPushes = 0
        newBytes = 0
        return true
    }

    /// PostgreSQL told how much there is, or did not.
    mutating func answered(
        _ usage: (games: Int64, bytes: Int64, deletions: Int64)?, _ limits: ServerConfiguration.Limits,
        at now: ContinuousClock.Instant
    ) {
        isAsking = false
        nextCheck = now + Self.recheck
        guard let usage else { return }
        isOverGames = limits.maxGamesPerPlayer.map { usage.games >= $0 } ?? false
        isOverBytes = limits.maxStoredBytesPerPlayer.map { usage.bytes >= $0 } ?? false
        isReserveUsedUp =
            limits.maxStoredBytesPerPlayer.map { usage.deletions >= Int64($0 / 8) / Int64(Self.bytesOfVersion) }
            ?? false
    }
}

/// What is known of players who have no connection, in bounded memory: where there are too many, those who have the least of
/// their limits behind them are forgotten.
struct AbsentPlayers {
    private var players: [PlayerID: (storage: Storage, share: Double)] = [:]
    private let capacity: Int

    init(capacity: Int = 65_536) {
        self.capacity = capacity
    }

    var count: Int { players.count }

    /// Keeps what is known, unless nothing is.
    mutating func remember(_ player: PlayerID, _ storage: Storage, share: Double) {
        guard share > 0 else { return }
        players[player] = (storage, share)
        guard players.count > capacity else { return }
        // A quarter at once, so that it is seldom done.
        let byShare = players.map { (player: $0.key, share: $0.value.share) }.sorted { $0.share < $1.share }
        for (player, _) in byShare.prefix(max(1, capacity / 4)) { players[player] = nil }
    }

    /// Takes out what is known.
    mutating func recall(_ player: PlayerID) -> Storage? { players.removeValue(forKey: player)?.storage }
}
