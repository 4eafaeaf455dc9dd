import Wire

/// A push that was accepted and waits for its batch, or is under way in one.
///
/// A class, since it passes through several queues: moving a reference costs less than moving its parts.
final class PendingPush {
    let push: Push
    /// The device's clock, or the server's at arrival where the push named none.
    let saved: Timestamp
    let player: PlayerID
    let device: DeviceID
    /// Until when the device counts as valid without being looked up again; nil: it is to be looked up.
    let verifiedUntil: ContinuousClock.Instant?
    let request: RequestID
    /// Who gets the answer.
    let origin: any PushOrigin
    /// The loop's clock at which it has waited long enough.
    let deadline: ContinuousClock.Instant
    /// The player's id in an order that is quick to compare, the database's own.
    fileprivate let order: (high: UInt64, low: UInt64)
    /// The place in which it came to its queue.
    fileprivate var sequence: UInt64 = 0

    init(
        push: Push, saved: Timestamp, player: PlayerID, device: DeviceID,
        verifiedUntil: ContinuousClock.Instant? = nil, request: RequestID, origin: any PushOrigin,
        deadline: ContinuousClock.Instant
    ) {
        self.push = push
        self.saved = saved
        self.player = player
        self.device = device
        self.verifiedUntil = verifiedUntil
        self.request = request
        self.origin = origin
        self.deadline = deadline
        order = player.uuid.words
    }

    /// Whether the device counts as valid at a moment without being looked up.
    func isDeviceVerified(at moment: ContinuousClock.Instant) -> Bool { verifiedUntil.map { moment < $0 } ?? false }

    /// What it counts for in limits of memory.
    var bytes: Int { (push.state?.count ?? 0) + 256 }

    fileprivate static func isBefore(_ left: PendingPush, _ right: PendingPush) -> Bool {
        if left.order.high != right.order.high { return left.order.high < right.order.high }
        if left.order.low != right.order.low { return left.order.low < right.order.low }
        return left.sequence < right.sequence
    }
}

/// Where the answer to a push goes.
protocol PushOrigin: AnyObject {
    func pushFinished(_ request: RequestID, _ result: PushResult)
    /// The database found the device of a push valid at a moment of the loop's clock.
    func deviceVerified(at moment: ContinuousClock.Instant)
}

/// The pushes of one lane that wait: each player's in order, players in the order in which they came.
///
/// A pure value; ``Lane`` drives it.
struct PushQueue {
    private var waiting: [PlayerID: FIFO<PendingPush>] = [:]
    private var order: [PlayerID] = []
    /// Rows that are taken in ever smaller batches, because one of them spoils its batch.
    private var isolated = 0
    private var isolationRows = 0
    private var nextSequence: UInt64 = 0

    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ push: PendingPush) {
        push.sequence = nextSequence
        nextSequence += 1
        if let index = waiting.index(forKey: push.player) {
            waiting.values[index].append(push)
        } else {
            var queue = FIFO<PendingPush>()
            queue.append(push)
            waiting[push.player] = queue
            order.append(push.player)
        }
        count += 1
    }

    /// The most rows that one player has in a batch, so that nobody waits for long behind somebody who pushes much.
    static let maxRowsPerPlayer = 16

    /// Takes the next batch, sorted by player, with at most one push of a game.
    ///
    /// A second push of a game waits for a later batch, and so does all that its player sent after it.
    mutating func takeBatch(maxRows: Int, maxBytes: Int) -> [PendingPush] {
        let maxRows = isolated > 0 ? min(maxRows, isolationRows) : maxRows
        var batch: [PendingPush] = []
        var bytes = 0
        var visited = 0
        var left: [PlayerID] = []
        batch.reserveCapacity(min(maxRows, count))
        for player in order {
            guard batch.count < maxRows, bytes < maxBytes || batch.isEmpty else { break }
            visited += 1
            if !take(from: player, into: &batch, &bytes, maxRows: maxRows, maxBytes: maxBytes) { left.append(player) }
        }
        count -= batch.count
        if count == 0 {
            // The common case: all at once costs less than one by one.
            waiting.removeAll(keepingCapacity: waiting.count <= 4096)
            order.removeAll(keepingCapacity: true)
        } else {
            for player in order[..<visited] where waiting[player]?.isEmpty == true { waiting[player] = nil }
            order.removeFirst(visited)
            order.append(contentsOf: left)
        }
        batch.sort(by: PendingPush.isBefore)
        return batch
    }

    /// Puts a batch back that was not stored, before everything else.
    ///
    /// - Parameter isolating: the batch failed because of one of its rows: take them in halves until it is alone.
    mutating func putBack(_ batch: [PendingPush], isolating: Bool = false) {
        var start = 0
        var players: [PlayerID] = []
        while start < batch.count {
            let player = batch[start].player
            let end = batch[start...].firstIndex { $0.player != player } ?? batch.count
            waiting[player, default: FIFO()].prepend(contentsOf: Array(batch[start..<end]))
            players.append(player)
            start = end
        }
        let returned = Set(players)
        order = players + order.filter { !returned.contains($0) }
        count += batch.count
        if isolating {
            isolated = max(isolated, batch.count)
            isolationRows = max(1, batch.count / 2)
        }
    }

    /// Tells that a batch was answered, so that isolation can end.
    mutating func finished(rows: Int) {
        isolated = max(0, isolated - rows)
    }

    /// Takes out every push whose deadline has passed.
    mutating func removeExpired(at now: ContinuousClock.Instant) -> [PendingPush] {
        var expired: [PendingPush] = []
        for player in order {
            guard var queue = waiting[player] else { continue }
            expired += queue.removeAll { $0.deadline <= now }
            waiting[player] = queue.isEmpty ? nil : queue
        }
        if !expired.isEmpty { order.removeAll { waiting[$0] == nil } }
        count -= expired.count
        return expired
    }

    /// - Returns: whether all of the player's pushes were taken; the empty queue stays until the batch is complete.
    private mutating func take(
        from player: PlayerID, into batch: inout [PendingPush], _ bytes: inout Int, maxRows: Int, maxBytes: Int
    ) -> Bool {
        guard let index = waiting.index(forKey: player) else { return true }
        let start = batch.count
        var games: Set<GameKey> = []
        let maxRows = min(maxRows, start + Self.maxRowsPerPlayer)
        while let next = waiting.values[index].first, batch.count < maxRows, bytes < maxBytes || batch.isEmpty {
            // A lone push is the common case and needs no set.
            if batch.count > start {
                if games.isEmpty { games.insert(batch[start].push.game) }
                guard games.insert(next.push.game).inserted else { break }
            }
            _ = waiting.values[index].popFirst()
            batch.append(next)
            bytes += next.bytes
        }
        return waiting.values[index].isEmpty
    }
}
