import Foundation
import Wire

/// What a reader of raw states asks a store for, past the games' types: the heads as the server has them, in the order of
/// their revisions, as its own `PULL` gives them.
extension GameStore {
    /// Whose games are in it; nil when there are none, or no server was met yet.
    package func owner() throws -> PlayerID? {
        try read { reader in
            guard try reader.connection.integer("SELECT EXISTS (SELECT 1 FROM games)") == 1 else { return nil }
            return try reader.connection.text("SELECT value FROM meta WHERE key = 'player'").flatMap { PlayerID($0) }
        }
    }

    /// Sees to it that ``heads(since:limit:)`` need not look through the whole store.
    package func prepareListing() throws {
        let name = "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name = 'games_base'"
        guard try read({ reader in try reader.connection.integer(name) }) == 0 else { return }
        try write { transaction in
            try transaction.connection.run("CREATE INDEX IF NOT EXISTS games_base ON games (base)")
        }
    }

    /// The life of the server's database that the revisions here belong to, nil before the first contact; and up to where the
    /// server's changes are here.
    package func feed() throws -> (epoch: UUID?, last: Revision) {
        let values = try read { reader in try reader.connection.metaValues() }
        return (values["epoch"].flatMap { UUID(uuidString: $0) }, values["cursor"].flatMap { Revision($0) } ?? 0)
    }

    /// The heads later than a cursor, as one moment had them. What this device saved and the server does not have yet is not
    /// among them; what the server has in its place is.
    /// - Parameters:
    ///   - cursor: a place in the server's feed of changes.
    ///   - limit: how many at most.
    package func heads(since cursor: Revision, limit: Int) throws -> HeadPage {
        try snapshot { connection in
            let values = try connection.metaValues()
            let last = values["cursor"].flatMap { Revision($0) } ?? 0
            var page = HeadPage(
                epoch: values["epoch"].flatMap { UUID(uuidString: $0) }, last: last, cursor: last, hasMore: false,
                heads: [])
            guard cursor < last else { return page }
            let own = values["device"].flatMap { DeviceID($0) }
            // One more, to know whether there is one.
            var heads = try connection.heads(since: cursor, upTo: last, limit: limit + 1, own: own)
            let unseen = try connection.unseenHeads(since: cursor, upTo: last)
            if !unseen.isEmpty { heads = (heads + unseen).sorted { $0.revision < $1.revision } }
            page.hasMore = heads.count > limit
            page.heads = Array(heads.prefix(limit))
            if page.hasMore, let reached = page.heads.last { page.cursor = reached.revision }
            return page
        }
    }

    /// How the device's copy of the games stands.
    package func copyState() throws -> CopyState {
        try snapshot { connection in
            let values = try connection.metaValues()
            func count(_ query: String) throws -> Int {
                Int(try connection.integer("SELECT count(*) FROM \(query)") ?? 0)
            }
            return CopyState(
                epoch: values["epoch"].flatMap { UUID(uuidString: $0) },
                cursor: values["cursor"].flatMap { Revision($0) } ?? 0,
                games: try count("games WHERE state IS NOT NULL"), unsent: try count("games WHERE unsent IN (1, 2)"),
                refused: try count("games WHERE unsent = 3"),
                conflicts: try count("conflicts WHERE outcome <> 'refused'"),
                lastEvent: try connection.integer("SELECT max(event) FROM conflicts") ?? 0)
        }
    }

    /// Reads what one moment had.
    private func snapshot<Value>(_ body: (SQLiteConnection) throws -> Value) throws -> Value {
        try read { reader in
            try reader.connection.run("BEGIN")
            defer { try? reader.connection.run("COMMIT") }
            return try body(reader.connection)
        }
    }
}

/// Heads as a store has them.
package struct HeadPage: Hashable, Sendable {
    /// The life of the server's database that the revisions belong to; nil before the first contact.
    package var epoch: UUID?
    /// Up to where the server's changes are in the store.
    package var last: Revision
    /// Where the next page goes on.
    package var cursor: Revision
    /// Whether there is one.
    package var hasMore: Bool
    /// The heads, by their revisions.
    package var heads: [Head]

    /// One of them.
    package enum Head: Hashable, Sendable {
        /// Here it is.
        case held(GameVersion)
        /// Something that the server does not have has taken its place here; the server has it.
        case replaced(GameKey, Revision)

        /// Its number.
        package var revision: Revision {
            switch self {
            case .held(let version): version.header.revision
            case .replaced(_, let revision): revision
            }
        }
    }
}

/// How a device's copy of its player's games stands.
package struct CopyState: Hashable, Sendable {
    /// The life of the server's database that the cursor belongs to; nil before the first contact.
    package var epoch: UUID?
    /// Up to where the server's changes are here.
    package var cursor: Revision
    /// How many games there are, without the deleted ones.
    package var games: Int
    /// How many games have a save that the server has not acknowledged.
    package var unsent: Int
    /// How many games have a save that the server does not take.
    package var refused: Int
    /// How many conflicts no app was told of yet.
    package var conflicts: Int
    /// The newest event that no app was told of; 0: there is none.
    package var lastEvent: Int64
}

extension SQLiteConnection {
    fileprivate func metaValues() throws -> [String: String] {
        var values: [String: String] = [:]
        try rows("SELECT key, value FROM meta") { values[$0.text(0) ?? ""] = $0.text(1) }
        return values
    }

    /// The heads that rows stand for, or whose place they have taken.
    fileprivate func heads(since: Revision, upTo last: Revision, limit: Int, own: DeviceID?) throws -> [HeadPage.Head] {
        var heads: [HeadPage.Head] = []
        try rows(
            """
            SELECT collection, id, base, unsent, state, schema, saved, stamp, device FROM games AS g
             WHERE base > ? AND base <= ? AND NOT (unsent <> 0 AND EXISTS (
                   SELECT 1 FROM unseen AS u WHERE u.collection = g.collection AND u.id = g.id))
             ORDER BY base LIMIT ?
            """, [.integer(since), .integer(last), .integer(Int64(clamping: limit))]
        ) { row in
            guard let key = row.key(0, 1) else { return }
            let revision = row.integer(2)
            guard row.integer(3) == 0 else { return heads.append(.replaced(key, revision)) }
            let saved = Timestamp(clamping: row.integer(6))
            let device = row.bytes(8).flatMap { UUID(bytes: $0) }.map { DeviceID($0) } ?? own
            guard let device else { return }
            let header = GameHeader(
                revision: revision, saved: saved, stamp: row.isNull(7) ? saved : Timestamp(clamping: row.integer(7)),
                device: device, schema: Int32(clamping: row.integer(5)))
            heads.append(.held(GameVersion(game: key, header: header, state: row.bytes(4))))
        }
        return heads
    }

    /// The heads that came while something unsent was in their place. There are few, if any.
    fileprivate func unseenHeads(since: Revision, upTo last: Revision) throws -> [HeadPage.Head] {
        var heads: [HeadPage.Head] = []
        try rows(
            """
            SELECT version FROM unseen AS u JOIN games AS g ON g.collection = u.collection AND g.id = u.id
             WHERE g.unsent <> 0
            """
        ) { row in
            guard let line = row.bytes(0), case .game(let version)? = try? ServerLine.parse(line.span) else { return }
            let revision = version.header.revision
            if revision > since, revision <= last { heads.append(.held(version)) }
        }
        return heads
    }
}
