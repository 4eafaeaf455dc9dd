import Foundation
import Wire

/// What the sync engine reads and writes in a store's SQLite file. Every call is to be made inside one transaction of the
/// owner's, on the connection's thread or under its lock.
///
/// The rule is ``HeldGame``'s: a row is read, one event happens to it, and it is written back.
final class SyncTables {
    /// The tables, besides `meta`, `collections` and `games`, which are the store's.
    static let schema = """
        CREATE TABLE IF NOT EXISTS inflight (
            collection TEXT NOT NULL, id TEXT NOT NULL, saved INTEGER NOT NULL, base INTEGER, schema INTEGER NOT NULL,
            state BLOB, PRIMARY KEY (collection, id)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS unseen (
            collection TEXT NOT NULL, id TEXT NOT NULL, version BLOB NOT NULL, PRIMARY KEY (collection, id)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS conflicts (
            event INTEGER PRIMARY KEY AUTOINCREMENT, is_open INTEGER NOT NULL, collection TEXT NOT NULL, id TEXT NOT NULL,
            outcome TEXT NOT NULL, rival INTEGER, mine BLOB NOT NULL, other BLOB, error BLOB);
        CREATE TABLE IF NOT EXISTS damaged (
            collection TEXT NOT NULL, id TEXT NOT NULL, found INTEGER NOT NULL, schema INTEGER NOT NULL, state BLOB NOT NULL,
            is_open INTEGER NOT NULL, PRIMARY KEY (collection, id, found)) WITHOUT ROWID;
        """

    let connection: SQLiteConnection
    /// The value's own time that a state tells; nil: it tells none.
    let timestamp: ([UInt8]) -> Int64?
    /// The collections whose visible rows have changed.
    var changed: Set<String> = []
    /// The next number of a visible change.
    let nextChange: () throws -> Int64

    init(
        connection: SQLiteConnection, timestamp: @escaping ([UInt8]) -> Int64?,
        nextChange: @escaping () throws -> Int64
    ) {
        self.connection = connection
        self.timestamp = timestamp
        self.nextChange = nextChange
    }

    // MARK: Where things stand

    func syncPoint() throws -> SyncPoint {
        var point = SyncPoint(epoch: try meta("epoch").flatMap { UUID(uuidString: $0) }, cursor: try cursor())
        point.unanswered = Int(try integer("SELECT count(*) FROM inflight"))
        point.waiting = Int(
            try integer(
                """
                SELECT (SELECT count(*) FROM games WHERE unsent <> 0 AND unsent IN (1, 2))
                     - (SELECT count(*) FROM inflight)
                """))
        let lookUps = try lookUps(limit: .max).count
        point.waiting = max(0, point.waiting - lookUps)
        let open = try integer(
            "SELECT (SELECT count(*) FROM conflicts WHERE is_open = 1) + (SELECT count(*) FROM damaged WHERE is_open = 1)"
        )
        point.hasErrands = lookUps > 0 || open > 0
        point.lastEvent = try integer("SELECT coalesce(max(event), 0) FROM conflicts WHERE is_open = 0")
        return point
    }

    func meet(_ signIn: SignIn, epoch: UUID, clockOffset: Int64, offersRefused: Bool) throws -> SyncPoint {
        let player = signIn.player.description
        if let known = try meta("player"), known != player, let id = PlayerID(known),
            try integer("SELECT count(*) FROM games") > 0
        {
            throw SyncStorageError.otherPlayer(id)
        }
        try setMeta("player", player)
        try setMeta("device", signIn.device.description)
        if try meta("clock_offset") == nil, clockOffset != 0 {
            try forEach("SELECT collection, id FROM games WHERE unsent <> 0 AND unsent = 1") {
                $0.correctClock(by: clockOffset)
            }
        }
        try setMeta("clock_offset", String(clockOffset))
        if offersRefused {
            try forEach("SELECT collection, id FROM games WHERE unsent <> 0 AND unsent = 3") { $0.offerAgain() }
        }
        let known = try meta("epoch")
        if known == nil { try setMeta("epoch", epoch.uuidString.lowercased()) }
        if let known, UUID(uuidString: known) != epoch { return try startOver(epoch: epoch) }
        return try syncPoint()
    }

    /// Makes the games another player's: from now on they are to be offered, as if that player had always played them here.
    /// - Returns: whether they were not that player's before.
    func give(to player: PlayerID) throws -> Bool {
        guard let known = try meta("player"), known != player.description else { return false }
        try setMeta("player", player.description)
        try setMeta("cursor", "0")
        try connection.run("DELETE FROM meta WHERE key IN ('epoch', 'device')")
        try forEach("SELECT collection, id FROM games") { $0.give() }
        try connection.run("UPDATE conflicts SET is_open = 0 WHERE is_open = 1")
        return true
    }

    func startOver(epoch: UUID) throws -> SyncPoint {
        try setMeta("epoch", epoch.uuidString.lowercased())
        try setMeta("cursor", "0")
        try forEach("SELECT collection, id FROM games") { $0.startOver() }
        // The revisions that were to be fetched mean nothing now.
        try connection.run("UPDATE conflicts SET is_open = 0 WHERE is_open = 1")
        return try syncPoint()
    }

    /// By how much later saves are to be corrected, in microseconds.
    func clockOffset() throws -> Int64 { Int64(try meta("clock_offset") ?? "") ?? 0 }

    // MARK: Sending

    func unanswered() throws -> [Push] {
        try keys("SELECT collection, id FROM inflight ORDER BY saved, collection, id").compactMap {
            try read($0)?.sending
        }
    }

    func takeOutgoing(limit: Int, bytes: Int) throws -> [Push] {
        guard let own = try own() else { return [] }
        var pushes: [Push] = []
        var size = 0
        let waiting = """
            SELECT collection, id FROM games AS g WHERE unsent <> 0 AND unsent IN (1, 2)
               AND NOT EXISTS (SELECT 1 FROM inflight AS i WHERE i.collection = g.collection AND i.id = g.id)
             ORDER BY unsent, rowid
            """
        for key in try keys(waiting, limit: limit + lookUps(limit: .max).count)
        where pushes.count < limit && (size < bytes || pushes.isEmpty) {
            guard var game = try read(key), let push = game.takePush(as: own) else { continue }
            try write(game)
            pushes.append(push)
            size += push.state?.count ?? 0
        }
        return pushes
    }

    func acknowledge(_ answers: [PushAnswer]) throws -> SyncPoint {
        guard let own = try own() else { return try syncPoint() }
        var cursor = try cursor()
        let before = cursor
        for answer in answers {
            // Nothing lies between the cursor and what is known to be there: no need to pull it.
            if answer.receipt.revision == cursor + 1 { cursor += 1 }
            guard var game = try read(answer.push.game) else { continue }
            let (conflict, isChanged) = game.acknowledge(answer.push, answer.receipt, as: own)
            try write(game, isChanged: isChanged)
            if let conflict { try add(conflict) }
        }
        if cursor != before { try setMeta("cursor", String(cursor)) }
        return try syncPoint()
    }

    func refuse(_ push: Push, _ error: WireError) throws -> SyncPoint {
        if var game = try read(push.game) {
            let isReported = game.refuse(push, error)
            try write(game)
            if isReported { try add(push, error) }
        }
        return try syncPoint()
    }

    // MARK: Hearing

    func apply(_ page: ChangePage, since: Revision) throws -> SyncPoint {
        let cursor = try cursor()
        guard let own = try own(), since <= cursor else { return try syncPoint() }
        for head in page.games {
            if var game = try read(head.game) {
                let old = game
                let isChanged = game.meet(head, as: own)
                if game != old { try write(game, isChanged: isChanged) }
            } else {
                try write(HeldGame(head), isChanged: true)
            }
        }
        if page.cursor > cursor { try setMeta("cursor", String(page.cursor)) }
        return try syncPoint()
    }

    func errands(limit: Int) throws -> [SyncErrand] {
        var errands: [SyncErrand] = []
        try connection.rows(
            "SELECT collection, id, rival FROM conflicts WHERE is_open = 1 ORDER BY event LIMIT ?",
            [.integer(Int64(limit))]
        ) {
            if let key = $0.key(0, 1) { errands.append(.fetch(key, $0.integer(2))) }
        }
        try connection.rows(
            "SELECT DISTINCT collection, id FROM damaged WHERE is_open = 1 LIMIT ?",
            [.integer(Int64(limit - errands.count))]
        ) {
            if let key = $0.key(0, 1) { errands.append(.replace(key)) }
        }
        return errands + (try lookUps(limit: limit - errands.count))
    }

    func settle(_ errand: SyncErrand, _ result: SyncErrand.Result) throws -> SyncPoint {
        switch errand {
        case .lookUp(let key, _, _):
            guard var game = try read(key) else { break }
            let isChanged = game.lookedUp(isThere: result != .missing)
            try write(game, isChanged: isChanged)
        case .fetch(let key, let revision):
            var version: GameVersion?
            if case .found(let found) = result { version = found }
            try closeConflicts(key, revision, version)
        case .replace(let key):
            if case .found(let head?) = result, var game = try read(key), isDamaged(game) {
                let isChanged = game.replace(with: head)
                try write(game, isChanged: isChanged)
            }
            try connection.run(
                "UPDATE damaged SET is_open = 0 WHERE collection = ? AND id = ?",
                [.text(key.collection), .text(key.id)])
        }
        return try syncPoint()
    }

    private func lookUps(limit: Int) throws -> [SyncErrand] {
        guard limit > 0, let own = try own() else { return [] }
        // Those whose head was not shown; the others are not even looked at.
        let candidates = """
            SELECT u.collection, u.id FROM unseen AS u
             CROSS JOIN games AS g ON g.collection = u.collection AND g.id = u.id WHERE g.unsent = 2
            """
        return try keys(candidates, limit: limit).compactMap { key in
            guard let game = try read(key), game.needsLookUp(as: own), let device = game.device else { return nil }
            return .lookUp(key, device, game.saved)
        }
    }

    /// Keeps a state's bytes when they are no JSON any more and the server has the game: it is to be fetched again.
    /// - Returns: whether there is something to fetch.
    func keepAsideIfDamaged(_ key: GameKey, at now: Timestamp) throws -> Bool {
        guard var game = try read(key), isDamaged(game), let state = game.state else { return false }
        guard
            try connection.integer(
                "SELECT count(*) FROM damaged WHERE collection = ? AND id = ? AND is_open = 1", .text(key.collection),
                .text(key.id)) == 0
        else { return true }
        try connection.run(
            "INSERT OR REPLACE INTO damaged (collection, id, found, schema, state, is_open) VALUES (?, ?, ?, ?, ?, 1)",
            [
                .text(key.collection), .text(key.id), .integer(now.microseconds), .integer(Int64(game.schema)),
                .bytes(state),
            ])
        if game.isNoLongerToBeProven() { try write(game) }
        return true
    }

    /// Whether what is stored cannot be what was once stored. What the server does not have is left to the app.
    private func isDamaged(_ game: HeldGame) -> Bool {
        guard let state = game.state, game.standing == .synced || game.standing == .unproven else { return false }
        return (try? RawJSON(checking: state)) == nil
    }

    // MARK: Values beside the rows

    private func integer(_ sql: String) throws -> Int64 { try connection.integer(sql) ?? 0 }

    func own() throws -> DeviceID? { try meta("device").flatMap { DeviceID($0) } }

    private func cursor() throws -> Revision { Int64(try meta("cursor") ?? "") ?? 0 }

    private func meta(_ key: String) throws -> String? {
        var value: String?
        try connection.rows("SELECT value FROM meta WHERE key = ?", [.text(key)]) { value = $0.text(0) }
        return value
    }

    private func setMeta(_ key: String, _ value: String) throws {
        try connection.run(
            "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [.text(key), .text(value)])
    }

    func keys(_ query: String, limit: Int = .max) throws -> [GameKey] {
        var keys: [GameKey] = []
        try connection.rows(query + " LIMIT ?", [.integer(Int64(limit))]) { row in
            if let key = row.key(0, 1) { keys.append(key) }
        }
        return keys
    }

    private func forEach(_ query: String, _ change: (inout HeldGame) -> Void) throws {
        for key in try keys(query) {
            guard let old = try read(key) else { continue }
            var game = old
            change(&game)
            if game != old { try write(game) }
        }
    }
}
