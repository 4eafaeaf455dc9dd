import Arguments
import Postgres
import SyncServer

/// `ieumd grant-reader` and `ieumd grant-daemon`: give a database role what a reader of the views, or a daemon, may do.
struct GrantCommand {
    /// One of the two commands.
    struct Kind: Sendable {
        let spec: CommandSpec
        let group: GroupRole
        /// What a member should not be able to do, and would by other grants: a condition on the role's name `r.rolname`.
        let excess: String
        /// What is said of such a member.
        let excessWarning: @Sendable (_ role: String) -> String
        /// Whether a member that does not inherit has to know it.
        let mustInherit: Bool
    }

    static let reader = Kind(
        spec: CommandSpec(
            "ieumd grant-reader", "let a database role read the views, but no table, token, code or hash",
            positionals: ["[role]"], options: DatabaseChoice.options,
            examples: [
                "ieumd grant-reader analyst", "ieumd grant-reader            only renews what ieum_reader may read",
            ], exitCodes: exitCodes),
        group: .reader,
        excess: """
            has_column_privilege(r.rolname, 'devices', 'token_hash', 'SELECT')
            OR has_table_privilege(r.rolname, 'game_versions', 'INSERT')
            """,
        excessWarning: { "\($0) may read or write the tables as well, by other grants" }, mustInherit: true)

    static let daemon = Kind(
        spec: CommandSpec(
            "ieumd grant-daemon", "let a database role do what a daemon does, and see one player at a time",
            positionals: ["[role]"], options: DatabaseChoice.options,
            examples: [
                "ieumd grant-daemon ieumd      then: ieumd serve --database 'host=db1 dbname=ieum user=ieumd'",
                "ieumd grant-daemon            only renews what ieum_daemon may do",
            ], exitCodes: exitCodes),
        group: .daemon,
        excess: """
            r.rolsuper OR r.rolbypassrls OR has_column_privilege(r.rolname, 'devices', 'token_hash', 'SELECT')
            OR has_table_privilege(r.rolname, 'game_versions', 'INSERT')
            """,
        excessWarning: {
            "\($0) may do more by itself; a daemon that logs in as it lays that down, but a login that is only a member is safer"
        }, mustInherit: false)

    private static let exitCodes: [(Int32, String)] = [
        (0, "granted"), (2, "usage, or there is no such role"), (4, "the database cannot be reached or changed"),
    ]

    private let kind: Kind
    private let choice: DatabaseChoice
    private let role: String?

    /// Checks the arguments.
    init(_ kind: Kind, _ arguments: [String], environment: [String: String]) throws(UsageError) {
        let parsed = try ParsedArguments(arguments, of: kind.spec, environment: environment)
        self.kind = kind
        choice = try DatabaseChoice(parsed, environment: environment)
        role = parsed.positional(0)
    }

    /// Makes the group's role where it is missing, renews its rights, and makes the given role a member of it.
    func run() -> Int32 {
        do throws(PrivateDatabaseError) {
            return try choice.use { conninfo in
                do throws(DatabaseError) {
                    return try grant(BlockingConnection(conninfo, applicationName: kind.spec.name))
                } catch {
                    Console.error("\(error)", hint: hint(error))
                    return 4
                }
            }
        } catch {
            Console.error(error.message, hint: error.hint)
            return error.exitCode
        }
    }

    private func hint(_ error: DatabaseError) -> String? {
        switch error.sqlState {
        case .undefinedFunction, .undefinedTable: "Run first: ieumd migrate up"
        case .insufficientPrivilege:
            "This needs a user that may make roles and grants the rights: the tables' owner with CREATEROLE, or a superuser."
        default: nil
        }
    }

    private func grant(_ connection: BlockingConnection) throws(DatabaseError) -> Int32 {
        if let role, role != kind.group.name, try !GroupRole.exists(role, connection) {
            Console.error(
                "there is no role \(role)",
                hint: "Make it: CREATE ROLE \(BlockingConnection.quoteIdentifier(role)) LOGIN;")
            return 2
        }
        let rights = try kind.group.renew(on: connection)
        if let role, role != kind.group.name {
            try kind.group.admit(role, on: connection)
            try warn(role, connection)
        }
        Console.output("\(role ?? kind.group.name) may \(rights)\n")
        return 0
    }

    /// Says where the role can do more, or less, than its grant means.
    private func warn(_ role: String, _ connection: BlockingConnection) throws(DatabaseError) {
        var parameters = ParameterList()
        parameters.append(role)
        let rights = try connection.query(
            """
            SELECT \(kind.excess),
                   pg_has_role(r.rolname, '\(kind.group.name)', 'USAGE'),
                   has_database_privilege(r.rolname, current_database(), 'CONNECT')
              FROM pg_roles AS r WHERE r.rolname = $1
            """, parameters)
        guard rights.rowCount == 1 else { return }
        if try rights.bool(0, 0) { Console.error(kind.excessWarning(role), hint: nil) }
        let inherits = try rights.bool(0, 1)
        if kind.mustInherit, !inherits {
            Console.error("\(role) does not inherit: it must say SET ROLE \(kind.group.name) first", hint: nil)
        }
        if try !rights.bool(0, 2) {
            Console.error("\(role) may not connect to this database: GRANT CONNECT ON DATABASE … is missing", hint: nil)
        }
    }
}
