import Postgres

/// Opens the database sessions of a run and turns their failures into ours.
struct Sessions {
    let database: String
    let options: Migrator.Options

    /// The session that reads the history and holds the lock.
    func openControl() throws(MigrationError) -> BlockingConnection {
        do throws(DatabaseError) {
            _ = try ConnectionSettings(database)
        } catch {
            throw MigrationError(.usage, error.message, hint: error.hint)
        }
        return try translating { () throws(DatabaseError) in
            let connection = try BlockingConnection(
                database, applicationName: applicationName, sessionSettings: ["statement_timeout": "0"])
            // It idles while the files run, and it must not wait for a table for ever.
            try connection.execute("SET idle_session_timeout = 0; SET lock_timeout = '30s'")
            return connection
        }
    }

    /// A fresh session for one file. Its settings are start-up options, so that a RESET ALL in a file comes back to them.
    func openWork(
        for file: MigrationFile, onNotice: @escaping (DatabaseNotice) -> Void
    ) throws(MigrationError) -> BlockingConnection {
        let lockTimeout = file.mode == .transaction ? options.lockTimeout : options.lockTimeoutOutsideTransaction
        let settings: KeyValuePairs = [
            "lock_timeout": "\(lockTimeout.milliseconds)ms",
            "statement_timeout": "\(options.statementTimeout.milliseconds)ms",
            // Between our own statements only; a file that waits here has lost its program.
            "idle_in_transaction_session_timeout": "60s",
        ]
        return try translating { () throws(DatabaseError) in
            let work = try BlockingConnection(
                database, applicationName: applicationName, sessionSettings: settings, onNotice: onNotice)
            // A pooler drops what a session begins with.
            if try Self.serverProcess(work) != work.backendPID {
                try work.execute(settings.map { "SET \($0.key) = '\($0.value)'" }.joined(separator: "; "))
            }
            return work
        }
    }

    /// The server's process at the other end, as the server counts. A pooler in between tells another number when it connects.
    static func serverProcess(_ connection: BlockingConnection) throws(DatabaseError) -> Int32 {
        try connection.query("SELECT pg_catalog.pg_backend_pid()").int4(0, 0)
    }

    private var applicationName: String { "\(options.applicationName)-migrate" }

    /// Runs something of our own on the database. What fails here is not a file's fault.
    @discardableResult
    func translating<Value>(_ body: () throws(DatabaseError) -> Value) throws(MigrationError) -> Value {
        do throws(DatabaseError) {
            return try body()
        } catch {
            throw failure(error)
        }
    }

    /// The failure that a database error outside of a file means.
    func failure(_ error: DatabaseError) -> MigrationError {
        if error.kind == .cancelled, let signal = options.interruption.signal { return .interrupted(by: signal) }
        let problem = Problem(
            error.message, sqlState: error.sqlState?.rawValue, detail: error.detail,
            hint: error.hint ?? Self.hint(for: error),
            context: error.context)
        return MigrationError(.connection, [problem])
    }

    private static func hint(for error: DatabaseError) -> String? {
        switch error.sqlState {
        case .insufficientPrivilege?:
            "The role that migrates needs the right to create tables in the schema: GRANT CREATE, USAGE ON SCHEMA … TO …;"
        case .readOnlySQLTransaction?:
            "The server takes no changes: it is a standby, or set read-only. Connect to the primary."
        case .invalidCatalogName?:
            "Create the database first: createdb NAME"
        case let state? where state.rawValue == "08P01" && error.message.contains("startup parameter"):
            "A pooler stands between here and the server, and takes no settings. Connect to the server itself; "
                + "or, where its mode is session, let it pass: ignore_startup_parameters = options"
        case nil where error.kind == .connection:
            "Is the server running, and does the connection string name it?"
        default:
            nil
        }
    }
}
