import Foundation
import Postgres
import Wire

/// Removes old versions, page by page, by the rule of the SQL function `prune_versions`.
///
/// A page is one short transaction. Nothing is remembered between runs: one that was cut off is begun again.
/// Documentation/history.md tells the rule to people.
public struct Retention: Sendable {
    /// What was removed, or would be.
    public struct Report: Equatable, Sendable {
        /// Versions that were looked at.
        public var seen: Int64 = 0
        /// Versions removed.
        public var deleted: Int64 = 0
        /// Octets of their states.
        public var octets: Int64 = 0
        /// How many of them were tombstones.
        public var tombstones: Int64 = 0
        /// How many of them had lost a conflict.
        public var losers: Int64 = 0
        /// Players that they were of.
        public var players: Int64 = 0

        /// Nothing so far.
        public init() {}
    }

    /// Versions that arrived before this moment may go: microseconds since 1970, by the server's clock.
    public let olderThan: Int64
    /// How many of each game's newest versions stay, whatever their age.
    public let keep: Int32
    /// Whether nothing is removed, only counted.
    public let isDryRun: Bool
    /// Versions that one transaction looks at.
    public let page: Int32
    /// What was done so far.
    public private(set) var report = Report()

    private var player = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    private var revision: Int64 = 0
    private var lastPlayer: UUID?

    /// Begins at the first player.
    public init(olderThan: Int64, keep: Int32 = 0, isDryRun: Bool = false, page: Int32 = 1_000) {
        self.olderThan = olderThan
        self.keep = keep
        self.isDryRun = isDryRun
        self.page = page
    }

    /// How much of all players is done, from 0 to 1: ids are random, so their order tells.
    public var fraction: Double {
        Double(player.words.high >> 32) / 4_294_967_296
    }

    /// Looks at one page.
    /// - Returns: Whether there may be more. After an error the same page is looked at again.
    public mutating func step(on connection: BlockingConnection) throws(DatabaseError) -> Bool {
        var parameters = ParameterList()
        parameters.append(microsecondsSince1970: olderThan)
        parameters.append(keep)
        parameters.append(player)
        parameters.append(revision)
        parameters.append(page)
        parameters.append(isDryRun)
        let rows = try connection.query(
            """
            SELECT seen, deleted, octets, tombstones, losers, players, next_player, next_revision, first_player, last_player
              FROM prune_versions($1, $2, $3, $4, $5, $6)
            """, parameters)
        let seen = try rows.int8(0, 0)
        report.seen += seen
        report.deleted += try rows.int8(0, 1)
        report.octets += try rows.int8(0, 2)
        report.tombstones += try rows.int8(0, 3)
        report.losers += try rows.int8(0, 4)
        report.players += try rows.int8(0, 5)
        if try !rows.isNull(0, 8) {
            // A player whose versions fill several pages is one player.
            if try rows.uuid(0, 8) == lastPlayer { report.players -= 1 }
            lastPlayer = try rows.uuid(0, 9)
        }
        guard try !rows.isNull(0, 6) else { return false }
        player = try rows.uuid(0, 6)
        revision = try rows.int8(0, 7)
        return seen >= Int64(page)
    }
}
