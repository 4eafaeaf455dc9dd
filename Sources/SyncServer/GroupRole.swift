import Postgres

/// A role by which others get rights in Ieum's database: they are made members of it.
///
/// It belongs to the whole PostgreSQL server, its rights to one database. The migrations make it where they may; `ieumd grant-reader`
/// and `ieumd grant-daemon` do what is missing.
public struct GroupRole: Sendable {
    /// Its name.
    public let name: String
    /// Gives it exactly its rights, and tells in a text which.
    private let grant: String

    /// Reads the views: SQL/migrations/0012_reader.sql.
    public static let reader = GroupRole(
        name: "ieum_reader", grant: "SELECT 'read ' || array_to_string(grant_views_to_reader(), ', ')")
    /// Does what a daemon does: SQL/migrations/0017_daemon.sql.
    public static let daemon = GroupRole(
        name: "ieum_daemon", grant: "SELECT 'do what a daemon does' FROM grant_rights_to_daemon()")

    /// Makes the role where it is missing, and gives it its rights.
    /// - Returns: what it may, in words.
    public func renew(on connection: BlockingConnection) throws(DatabaseError) -> String {
        if try !Self.exists(name, connection) {
            do throws(DatabaseError) {
                try connection.execute("CREATE ROLE \(name) NOLOGIN")
            } catch {
                // Another was quicker, which is as good.
                guard error.sqlState == SQLState(rawValue: "42710") || error.sqlState == .uniqueViolation else {
                    throw error
                }
            }
        }
        return try connection.query(grant).text(0, 0)
    }

    /// Makes another role a member.
    public func admit(_ role: String, on connection: BlockingConnection) throws(DatabaseError) {
        try connection.execute("GRANT \(name) TO \(BlockingConnection.quoteIdentifier(role))")
    }

    /// Renews the role and lets it log in by itself: for a server that only its owner can reach.
    /// - Returns: how to connect as it, where the owner connects by `conninfo`.
    public func login(over connection: BlockingConnection, _ conninfo: String) throws(DatabaseError) -> String {
        _ = try renew(on: connection)
        try connection.execute("ALTER ROLE \(name) LOGIN")
        return "\(conninfo) user=\(name)"
    }

    /// Whether there is a role of a name.
    public static func exists(_ role: String, _ connection: BlockingConnection) throws(DatabaseError) -> Bool {
        var parameters = ParameterList()
        parameters.append(role)
        return try connection.query("SELECT FROM pg_roles WHERE rolname = $1", parameters).rowCount == 1
    }
}
