import Arguments
import Postgres
import SyncServer

/// `ieumd grant-reader`: lets a database role read the views, and nothing else.
struct GrantReaderCommand {
    static let spec = CommandSpec(
        "ieumd grant-reader", "let a database role read the views, but no table, token, code or hash",
        positionals: ["[role]"], options: DatabaseChoice.options,
        examples: [
            "ieumd grant-reader analyst", "ieumd grant-reader            only renews what ieum_reader may read",
        ],
        exitCodes: [
            (0, "granted"), (2, "usage, or there is no such role"), (4, "the database cannot be reached or changed"),
        ])

    private let choice: DatabaseChoice
    private let role: String?

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        let parsed = try ParsedArguments(arguments, of: Self.spec, environment: environment)
        choice = try DatabaseChoice(parsed, environment: environment)
        role = parsed.positional(0)
    }

    /// Makes the role `ieum_reader` where it is missing, and the given role a member of it.
    func run() -> Int32 {
        do throws(PrivateDatabaseError) {
            return try choice.use { conninfo in
                do throws(DatabaseError) {
                    return try grant(BlockingConnection(conninfo, applicationName: "ieumd grant-reader"))
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
            "This needs a user that may make roles and grants the views: their owner with CREATEROLE, or a superuser."
        default: nil
        }
    }

    private func grant(_ connection: BlockingConnection) throws(DatabaseError) -> Int32 {
        if let role, role != Self.reader, try !exists(role, connection) {
            Console.error(
                "there is no role \(role)",
                hint: "Make it: CREATE ROLE \(BlockingConnection.quoteIdentifier(role)) LOGIN;")
            return 2
        }
        if try !exists(Self.reader, connection) {
            do throws(DatabaseError) {
                try connection.execute("CREATE ROLE \(Self.reader) NOLOGIN")
            } catch {
                // Another was quicker, which is as good.
                guard error.sqlState == SQLState(rawValue: "42710") || error.sqlState == .uniqueViolation else {
                    throw error
                }
            }
        }
        let views = try connection.query("SELECT array_to_string(grant_views_to_reader(), ', ')").text(0, 0)
        if let role, role != Self.reader {
            try connection.execute("GRANT \(Self.reader) TO \(BlockingConnection.quoteIdentifier(role))")
            Console.output("\(role) may read \(views)\n")
            try warn(role, connection)
        } else {
            Console.output("\(Self.reader) may read \(views)\n")
        }
        return 0
    }

    /// Says where the role can do more, or less, than its grant means.
    private func warn(_ role: String, _ connection: BlockingConnection) throws(DatabaseError) {
        var parameters = ParameterList()
        parameters.append(role)
        let rights = try connection.query(
            """
            SELECT has_column_privilege(r.rolname, 'devices', 'token_hash', 'SELECT') OR has_table_privilege(r.rolname, 'game_versions', 'INSERT'),
                   has_table_privilege(r.rolname, 'history', 'SELECT'),
                   has_database_privilege(r.rolname, current_database(), 'CONNECT')
              FROM pg_roles AS r WHERE r.rolname = $1
            """, parameters)
        guard rights.rowCount == 1 else { return }
        if try rights.bool(0, 0) {
            Console.error("\(role) may read or write the tables as well, by other grants", hint: nil)
        }
        if try !rights.bool(0, 1) {
            Console.error("\(role) does not inherit: it must say SET ROLE \(Self.reader) first", hint: nil)
        }
        if try !rights.bool(0, 2) {
            Console.error("\(role) may not connect to this database: GRANT CONNECT ON DATABASE … is missing", hint: nil)
        }
    }

    private func exists(_ role: String, _ connection: BlockingConnection) throws(DatabaseError) -> Bool {
        var parameters = ParameterList()
        parameters.append(role)
        return try connection.query("SELECT FROM pg_roles WHERE rolname = $1", parameters).rowCount == 1
    }

    private static let reader = "ieum_reader"
}
