import Postgres

/// As whom a daemon works in the database: as the role `ieum_daemon`, which may do what a daemon does and nothing else.
///
/// SQL/migrations/0017_daemon.sql makes the role and says what it may; Documentation/operations.md tells operators of it.
public struct DaemonAccess: Equatable, Sendable {
    /// How a login comes by the role's rights.
    public enum Kind: Equatable, Sendable {
        /// It has them by itself, as a member, and no others.
        case limited
        /// It may do more, and lays that down in each session.
        case assumed
        /// It cannot: it does all that it may, which is what the owner of the tables may.
        case owner
    }

    /// How.
    public let kind: Kind
    /// The login.
    public let user: String
    /// Whether everybody may call what only daemons may: a dump was restored without its privileges.
    public let isOpenToAll: Bool
    /// What each session of a daemon begins with, one statement each.
    public let setup: [String]

    /// Finds out what a login may do. Needs the schema to be up to date.
    /// - Returns: nil where it is neither the owner of the tables nor a member of the role, so that it would find them empty.
    public static func find(over connection: BlockingConnection) throws(DatabaseError) -> DaemonAccess? {
        let rows = try connection.query(
            """
            SELECT u.rolname::text, n.nspname::text,
                   u.rolsuper OR u.rolbypassrls OR pg_has_role(u.oid, c.relowner, 'USAGE'),
                   coalesce(has_function_privilege(d.oid, 'find_device(uuid,uuid,bytea)', 'EXECUTE'), false),
                   coalesce(pg_has_role(u.oid, d.oid, 'USAGE'), false),
                   coalesce(pg_has_role(u.oid, d.oid, CASE WHEN current_setting('server_version_num')::integer < 160000
                                                           THEN 'MEMBER' ELSE 'SET' END), false),
                   has_function_privilege('public', 'find_device(uuid,uuid,bytea)', 'EXECUTE')
              FROM pg_roles AS u
             CROSS JOIN pg_class AS c
              JOIN pg_namespace AS n ON n.oid = c.relnamespace
              LEFT JOIN pg_roles AS d ON d.rolname = '\(GroupRole.daemon.name)'
             WHERE u.rolname = current_user AND c.oid = 'players'::regclass
            """)
        guard rows.rowCount == 1 else { return nil }
        let (user, schema) = (try rows.text(0, 0), try rows.text(0, 1))
        let (isStrong, isReady) = (try rows.bool(0, 2), try rows.bool(0, 3))
        let (inherits, mayAssume) = (try rows.bool(0, 4), try rows.bool(0, 5))
        // No name is looked for anywhere else; and "$user" would be another once the role is assumed.
        let path = "SET search_path = \(BlockingConnection.quoteIdentifier(schema)), pg_temp"
        let isOpen = try rows.bool(0, 6)
        func access(_ kind: Kind, _ setup: String...) -> DaemonAccess {
            DaemonAccess(kind: kind, user: user, isOpenToAll: isOpen, setup: setup + [path])
        }
        if isReady, inherits, !isStrong { return access(.limited) }
        if isReady, mayAssume { return access(.assumed, "SET ROLE \(GroupRole.daemon.name)") }
        return isStrong ? access(.owner) : nil
    }
}
