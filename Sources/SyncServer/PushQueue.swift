import Wire

/// A push that was accepted and waits for its batch, or is under way in one.
struct PendingPush {
    let push: Push
    /// The device's clock, or the server's at arrival where the push named none.
    let saved: Timestamp
    let player: PlayerID
    let device: DeviceID
    let request: RequestID
    /// Who gets the answer.
    let origin: any PushOrigin
    /// The loop's clock at which it has waited long enough.
    let deadline: ContinuousClock.Instant

    /// What it counts for in limits of memory.
    var bytes: Int { (push.state?.count ?? 0) + 256 }
}

/// Where the answer to a push goes.
protocol PushOrigin: AnyObject {
    func pushFinished(_ request: RequestID, _ result: PushResult)
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

    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ push: PendingPush) {
        if waiting[push.player] == nil { order.append(push.player) }
        waiting[push.player, default: FIFO()].append(push)
        count += 1
    }

    /// Takes the next batch, sorted by player, with at most one push of a game.
    ///
    /// A second push of a game waits for a later batch, and so does all that its player sent after it.
    mutating func takeBatch(maxRows: Int, maxBytes: Int) -> [PendingPush] {
        let maxRows = isolated > 0 ? min(maxRows, isolationRows) : maxRows
        var groups: [[PendingPush]] = []
        var rows = 0
        var bytes = 0
        var visited = 0
        var left: [PlayerID] = []
        for player in order {
            guard rows < maxRows, bytes < maxBytes || rows == 0 else { break }
            visited += 1
            let group = takeGroup(of: player, &rows, &bytes, maxRows: maxRows, maxBytes: maxBytes)
            if !group.isEmpty { groups.append(group) }
            if waiting[player] != nil { left.append(player) }
        }
        order.removeFirst(visited)
        order.append(contentsOf: left)
        count -= rows
        groups.sort { $0[0].player < $1[0].player }
        return groups.flatMap { $0 }
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

    private mutating func takeGroup(
        of player: PlayerID, _ rows: inout Int, _ bytes: inout Int, maxRows: Int, maxBytes: Int
    ) -> [PendingPush] {
        guard let index = waiting.index(forKey: player) else { return [] }
        var group: [PendingPush] = []
        var games: Set<GameKey> = []
        while let next = waiting.values[index].first, rows < maxRows, bytes < maxBytes || rows == 0 {
            // A lone push is the common case and needs no set.
            if !group.isEmpty {
                if games.isEmpty { games.insert(group[0].push.game) }
                guard games.insert(next.push.game).inserted else { break }
            }
            _ = waiting.values[index].popFirst()
            group.append(next)
            rows += 1
            bytes += next.bytes
        }
        if waiting.values[index].isEmpty { waiting.remove(at: index) }
        return group
    }
}
