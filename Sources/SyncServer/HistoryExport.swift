import Foundation
import Postgres
import Wire

/// Puts a player's whole history into the lines that `ieum export` writes, beside running daemons; what `ieumd export` does.
///
/// All of it is read in one snapshot, page by page: what is in memory is a page. A standby will do.
public struct HistoryExport {
    /// What was written.
    public struct Report: Encodable, Equatable, Sendable {
        /// Versions, tombstones among them.
        public let versions: Int64
        /// Devices that pushed them.
        public let devices: Int64
        /// The player's last revision.
        public let lastRevision: Int64
        /// Versions below this revision may have been pruned; 0: none was.
        public let purgedBefore: Int64
        /// SHA-256 of what stands between the first line and the checksum itself.
        public let sha256: String
    }

    /// Why there is nothing to write.
    public enum Refusal: String, Error, Sendable {
        /// There is no such player.
        case unknownPlayer = "unknown-player"
        /// Forgetting the player has begun: versions are gone, or may be.
        case beingForgotten = "being-forgotten"
    }

    private static let pageRows: Int64 = 1_000
    private static let pageBytes: Int64 = 1 << 20

    private let player: PlayerID
    private let connection: BlockingConnection

    /// Begins with a player.
    public init(_ player: UUID, over connection: BlockingConnection) {
        self.player = PlayerID(player)
        self.connection = connection
    }

    /// Reads the history, and gives its lines away in their order.
    /// - Parameters:
    ///   - progress: is told how many versions were given, after every page.
    ///   - write: takes lines, the line feeds included.
    /// - Throws: ``Refusal``, `DatabaseError`, and what `write` throws.
    public func run(
        progress: (Int64) -> Void = { _ in }, write: ([UInt8]) throws -> Void
    ) throws -> Report {
        try connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        // Nothing was changed, so nothing is lost by it.
        defer { _ = try? connection.execute("ROLLBACK") }
        try checkPlayer()
        let server = try connection.query("SELECT epoch FROM server")
        let header = ExportLine.Header(epoch: try server.uuid(0, 0), player: player, exported: Clock.now())
        try write(ExportLine.header(header).bytes)
        var writer = ExportWriter()
        var (lastRevision, purgedBefore): (Revision, Revision) = (0, 0)
        var next: Revision? = 0
        while let since = next {
            let rows = try page(since: since)
            lastRevision = try rows.int8(0, VersionsColumn.last)
            purgedBefore = try rows.int8(0, VersionsColumn.purgedBefore)
            next = nil
            let isEmpty = try rows.isNull(0, VersionsColumn.shift)
            for row in 0..<(isEmpty ? 0 : rows.rowCount) {
                let version = try ReadAnswers.versionEntry(rows, row)
                try write(
                    writer.lines(of: version) { (author) throws(DatabaseError) in
                        try device(author, first: version)
                    })
                if row == rows.rowCount - 1, try rows.bool(row, VersionsColumn.more) { next = version.detail.revision }
            }
            progress(writer.versions)
        }
        let end = writer.end(lastRevision: lastRevision, purgedBefore: purgedBefore)
        try write(ExportLine.end(end).bytes)
        return Report(
            versions: end.totals.versions, devices: end.totals.devices, lastRevision: lastRevision,
            purgedBefore: purgedBefore, sha256: end.checksum)
    }

    private var key: ParameterList {
        var parameters = ParameterList()
        parameters.append(player.uuid)
        return parameters
    }

    /// `begin_forgetting` leaves the player no device that could sign in, not even one that was revoked: no secret has
    /// their hash. Every other player has at least the one that registered.
    private func checkPlayer() throws {
        let rows = try connection.query(
            """
            SELECT EXISTS (SELECT FROM devices AS d
                            WHERE d.player_id = p.player_id AND d.token_hash <> decode(repeat('00', 32), 'hex'))
              FROM players AS p WHERE p.player_id = $1
            """, key)
        guard rows.rowCount == 1 else { throw Refusal.unknownPlayer }
        guard try rows.bool(0, 0) else { throw Refusal.beingForgotten }
    }

    private func page(since revision: Revision) throws(DatabaseError) -> QueryResult {
        var parameters = key
        parameters.append(revision)
        parameters.append(Self.pageRows)
        parameters.append(Self.pageBytes)
        parameters.append(true)
        let rows = try connection.query(ReadStatements.versionsSince.sql, parameters)
        guard rows.rowCount > 0 else { throw DatabaseError(.protocol, "the player left its own snapshot") }
        return rows
    }

    private func device(_ author: DeviceID, first version: VersionEntry) throws(DatabaseError) -> ImportedDevice {
        var parameters = key
        parameters.append(author.uuid)
        let rows = try connection.query(
            "SELECT d.name, d.created FROM devices AS d WHERE d.player_id = $1 AND d.device_id = $2", parameters)
        guard rows.rowCount == 1 else {
            return ImportedDevice(device: author, created: version.detail.received, name: "device")
        }
        return ImportedDevice(device: author, created: try rows.timestamp(0, 1), name: try rows.text(0, 0))
    }
}
