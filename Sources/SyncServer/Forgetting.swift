import Foundation
import Postgres

/// Removes a player with everything, beside running daemons; what `ieumd forget` does.
///
/// First the devices are shut out, then versions go page by page, each a short transaction, and at last all that is left in one.
/// Nothing is remembered between runs: one that was cut off is begun again, and finds what is left.
public struct Forgetting {
    /// What was removed, by this run.
    public struct Report: Encodable, Equatable, Sendable {
        /// Versions, heads among them.
        public var versions: Int64 = 0
        /// Octets of their states.
        public var bytes: Int64 = 0
        /// Games, deleted ones among them.
        public var games: Int64 = 0
        /// Devices, revoked ones among them.
        public var devices: Int64 = 0
        /// Invites that had let the player in.
        public var invites: Int64 = 0
    }

    /// Who is forgotten.
    public let player: UUID
    /// Versions that one transaction removes.
    public let page: Int32
    /// What was removed so far.
    public private(set) var report = Report()

    /// Begins with a player.
    public init(_ player: UUID, page: Int32 = 1_000) {
        self.player = player
        self.page = page
    }

    /// Shuts the player's devices out; their sessions end within a second.
    /// - Returns: whether there is such a player.
    public func begin(on connection: BlockingConnection) throws(DatabaseError) -> Bool {
        let isFound = try connection.query("SELECT begin_forgetting($1)", key).bool(0, 0)
        if isFound { SessionEnds.notify(over: connection) }
        return isFound
    }

    /// Removes a page of versions.
    /// - Returns: whether there may be more. After an error the same page is tried again.
    public mutating func step(on connection: BlockingConnection) throws(DatabaseError) -> Bool {
        var parameters = key
        parameters.append(page)
        let rows = try connection.query("SELECT versions, octets FROM forget_versions($1, $2)", parameters)
        let versions = try rows.int8(0, 0)
        report.versions += versions
        report.bytes += try rows.int8(0, 1)
        return versions >= Int64(page)
    }

    /// Removes what is left, the player too.
    public mutating func finish(on connection: BlockingConnection) throws(DatabaseError) {
        let rows = try connection.query(
            "SELECT versions, octets, games, devices, invites FROM finish_forgetting($1)", key)
        report.versions += try rows.int8(0, 0)
        report.bytes += try rows.int8(0, 1)
        report.games += try rows.int8(0, 2)
        report.devices += try rows.int8(0, 3)
        report.invites += try rows.int8(0, 4)
        SessionEnds.notify(over: connection)
    }

    private var key: ParameterList {
        var parameters = ParameterList()
        parameters.append(player)
        return parameters
    }
}
