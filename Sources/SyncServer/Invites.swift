import Foundation
import Postgres
import Wire

/// Codes by which an operator lets new players in, one each; what `ieumd invite` does.
public struct Invites {
    /// A code that was just made. Shown once: the database keeps only its SHA-256.
    public struct Made: Encodable, Sendable {
        /// What names it in lists: the first four characters.
        public let id: String
        /// The code, to be given to who is invited.
        public let code: String
        /// Until when it may be used.
        public let expires: String
    }

    /// A code as it is listed, without its secret.
    public struct Listed: Encodable, Sendable {
        /// What names it: the first four characters of the code.
        public let id: String
        /// When it was made.
        public let created: String
        /// Until when it may be used.
        public let expires: String
        /// `open`, `used` or `expired`.
        public let state: String
        /// When it was used.
        public let redeemed: String?
        /// The player that it let in.
        public let player: String?
    }

    /// Why no code was made.
    public struct NoRandomness: Error {}

    private let connection: BlockingConnection

    /// Works over a connection.
    public init(_ connection: BlockingConnection) {
        self.connection = connection
    }

    /// Makes a code that holds for so many microseconds; clears away those that expired a month ago.
    public func make(lifetime: Int64) throws -> Made {
        try connection.execute("DELETE FROM invites WHERE expires < clock_timestamp() - interval '30 days'")
        while true {
            guard let code = (try? Secrets.randomBytes(InviteCode.byteCount)).flatMap(InviteCode.init(bytes:)) else {
                throw NoRandomness()
            }
            var parameters = ParameterList()
            parameters.append(code.locator)
            parameters.append(Secrets.sha256(code.canonical))
            parameters.append(lifetime)
            // A locator that names another code is replaced by another.
            let rows = try connection.query(
                """
                INSERT INTO invites (locator, code_hash, created, expires)
                SELECT $1, $2, m.moment, m.moment + $3 * interval '1 microsecond'
                  FROM (SELECT clock_timestamp() AS moment) AS m
                ON CONFLICT (locator) DO NOTHING
                RETURNING expires
                """, parameters)
            guard rows.rowCount == 1 else { continue }
            return Made(id: code.locator, code: code.text, expires: try rows.timestamp(0, 0).description)
        }
    }

    /// All codes, the newest first.
    public func list() throws(DatabaseError) -> [Listed] {
        let rows = try connection.query(
            """
            SELECT locator, created, expires,
                   CASE WHEN redeemed IS NOT NULL THEN 'used' WHEN expires <= clock_timestamp() THEN 'expired' ELSE 'open' END,
                   redeemed, player_id
              FROM invites ORDER BY created DESC, locator
            """)
        var listed: [Listed] = []
        for row in 0..<rows.rowCount {
            listed.append(
                Listed(
                    id: try rows.text(row, 0), created: try rows.timestamp(row, 1).description,
                    expires: try rows.timestamp(row, 2).description, state: try rows.text(row, 3),
                    redeemed: try rows.isNull(row, 4) ? nil : rows.timestamp(row, 4).description,
                    player: try rows.isNull(row, 5) ? nil : PlayerID(rows.uuid(row, 5)).description))
        }
        return listed
    }

    /// Removes a code that was not used; the player that a used one let in stays.
    /// - Returns: whether there was one.
    public func cancel(_ id: String) throws(DatabaseError) -> Bool {
        var parameters = ParameterList()
        parameters.append(id)
        return try connection.query(
            "DELETE FROM invites WHERE locator = $1 AND redeemed IS NULL RETURNING locator", parameters
        )
        .rowCount == 1
    }
}
