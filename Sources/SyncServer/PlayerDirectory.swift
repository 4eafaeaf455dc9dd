import Foundation
import Postgres
import Wire

/// Players and their devices, for the operator: what `ieumd players`, `devices` and `revoke` do. No secret is read.
public struct PlayerDirectory {
    /// A player in numbers.
    public struct Player: Encodable, Sendable {
        /// Its id.
        public let player: String
        /// When it signed up.
        public let created: String
        /// Devices that may log in.
        public let devices: Int64
        /// Games that are not deleted.
        public let games: Int64
        /// Versions that are kept.
        public let versions: Int64
        /// Octets of their states.
        public let bytes: Int64
        /// When the latest version arrived.
        public let lastPush: String?
    }

    /// A device of a player's.
    public struct Device: Encodable, Sendable {
        /// Its id.
        public let device: String
        /// What its owner calls it: any text.
        public let name: String
        /// When it was registered or linked.
        public let created: String
        /// Since when it may neither log in nor push.
        public let revoked: String?
        /// Versions of its that are kept.
        public let pushes: Int64
        /// When the latest of them arrived.
        public let lastPush: String?
    }

    private let connection: BlockingConnection

    /// Works over a connection.
    public init(_ connection: BlockingConnection) {
        self.connection = connection
    }

    private static let columns = "s.player_id, s.created, s.devices, s.games, s.versions, s.octets, s.last_received"

    /// A page of players in the order of their ids.
    /// - Parameters:
    ///   - after: the last id of the page before; nil: the first page.
    ///   - limit: how many at most.
    ///   - search: the beginning of an id, four characters at least, or of a device's name in upper or lower case; nil: all.
    public func players(after: UUID?, limit: Int, search: String?) throws(DatabaseError) -> [Player] {
        var parameters = ParameterList()
        parameters.append(after ?? UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
        parameters.append(Int64(limit))
        guard let search else {
            return try read(
                connection.query(
                    """
                    SELECT \(Self.columns) FROM player_summary AS s
                     WHERE s.player_id > $1 ORDER BY s.player_id LIMIT $2
                    """, parameters))
        }
        let (first, last) = Self.range(ofPrefix: search) ?? Self.noRange
        parameters.append(first)
        parameters.append(last)
        parameters.append(Self.escapedPattern(search) + "%")
        // Each side is found by an index, and no more than a page of it.
        return try read(
            connection.query(
                """
                SELECT \(Self.columns)
                  FROM (SELECT c.player_id
                          FROM ((SELECT p.player_id FROM players AS p
                                  WHERE p.player_id > $1 AND p.player_id BETWEEN $3 AND $4
                                  ORDER BY p.player_id LIMIT $2)
                                UNION
                                (SELECT DISTINCT d.player_id FROM devices AS d
                                  WHERE d.player_id > $1 AND lower(d.name) LIKE lower($5)
                                  ORDER BY d.player_id LIMIT $2)) AS c
                         ORDER BY c.player_id LIMIT $2) AS c
                 CROSS JOIN LATERAL (SELECT * FROM player_summary AS s WHERE s.player_id = c.player_id) AS s
                 ORDER BY s.player_id
                """, parameters))
    }

    /// One player.
    public func player(_ id: UUID) throws(DatabaseError) -> Player? {
        var parameters = ParameterList()
        parameters.append(id)
        return try read(
            connection.query("SELECT \(Self.columns) FROM player_summary AS s WHERE s.player_id = $1", parameters)
        ).first
    }

    /// A player's devices, those that may log in first, then the newest; nil: there is no such player.
    public func devices(of player: UUID) throws(DatabaseError) -> [Device]? {
        var parameters = ParameterList()
        parameters.append(player)
        let rows = try connection.query(
            """
            SELECT d.device_id, d.name, d.created, d.revoked, d.pushes, d.last_received
              FROM player_devices AS d WHERE d.player_id = $1
             ORDER BY d.revoked IS NOT NULL, d.created DESC, d.device_id
            """, parameters)
        if rows.rowCount == 0, try self.player(player) == nil { return nil }
        var devices: [Device] = []
        for row in 0..<rows.rowCount {
            devices.append(
                Device(
                    device: DeviceID(try rows.uuid(row, 0)).description, name: try rows.text(row, 1),
                    created: try rows.timestamp(row, 2).description, revoked: try rows.time(row, 3),
                    pushes: try rows.int8(row, 4), lastPush: try rows.time(row, 5)))
        }
        return devices
    }

    /// Ends a device, and lets the daemons look at once.
    /// - Returns: whether the player has such a device.
    public func revoke(_ device: UUID, of player: UUID) throws(DatabaseError) -> Bool {
        var parameters = ParameterList()
        parameters.append(player)
        parameters.append(device)
        guard try connection.query("SELECT revoke_device($1, $2)", parameters).text(0, 0) == "done" else {
            return false
        }
        SessionEnds.notify(over: connection)
        return true
    }

    /// Makes a code by which a device joins a player who has none left that could make one.
    /// - Returns: the code as it is typed, and until when it holds; nil: there is no such player.
    public func makePairingCode(for player: UUID) throws -> (code: String, expires: String)? {
        guard try self.player(player) != nil else { return nil }
        while true {
            guard let code = (try? Secrets.randomBytes(5)).flatMap(PairingCode.init(bytes:)) else {
                throw Invites.NoRandomness()
            }
            var parameters = ParameterList()
            parameters.append(player)
            parameters.append(code.locator)
            parameters.append(Secrets.sha256(code.canonical))
            let rows = try connection.query("SELECT create_pairing_code($1, $2, $3)", parameters)
            // NULL: the locator names another code that still holds.
            if try !rows.isNull(0, 0) { return (code.text, try rows.timestamp(0, 0).description) }
        }
    }

    private func read(_ rows: QueryResult) throws(DatabaseError) -> [Player] {
        var players: [Player] = []
        for row in 0..<rows.rowCount {
            players.append(
                Player(
                    player: PlayerID(try rows.uuid(row, 0)).description,
                    created: try rows.timestamp(row, 1).description,
                    devices: try rows.int8(row, 2), games: try rows.int8(row, 3), versions: try rows.int8(row, 4),
                    bytes: try rows.int8(row, 5), lastPush: try rows.time(row, 6)))
        }
        return players
    }

    /// The ids that begin like that; nil where that is no beginning of an id, or too short to be meant as one.
    static func range(ofPrefix text: String) -> (first: UUID, last: UUID)? {
        let digits = text.lowercased().utf8.filter { $0 != UInt8(ascii: "-") }
        guard (4...32).contains(digits.count), digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else {
            return nil
        }
        func id(filledWith digit: Character) -> UUID? {
            let all = Array(
                String(decoding: digits, as: UTF8.self) + String(repeating: digit, count: 32 - digits.count))
            let parts = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(all[$0]) }
            return UUID(uuidString: parts.joined(separator: "-"))
        }
        guard let first = id(filledWith: "0"), let last = id(filledWith: "f") else { return nil }
        return (first, last)
    }

    /// Between these there is nothing.
    private static let noRange = (
        first: UUID(uuid: (255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255)),
        last: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    )

    /// A text with what LIKE takes for more than itself escaped.
    private static func escapedPattern(_ text: String) -> String {
        text.reduce(into: "") { $0 += ["\\", "%", "_"].contains($1) ? "\\\($1)" : "\($1)" }
    }
}

extension SessionEnds {
    /// Lets the daemons look at once. A hint: they look by themselves within half a second.
    static func notify(over connection: BlockingConnection) {
        _ = try? connection.query("SELECT pg_notify('\(ChangeFeed.channel)', '\(ChangeFeed.sessionEndsWord)')")
    }
}

extension QueryResult {
    fileprivate func time(_ row: Int, _ column: Int) throws(DatabaseError) -> String? {
        try isNull(row, column) ? nil : timestamp(row, column).description
    }
}
