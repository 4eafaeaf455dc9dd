import CLibPQ

/// A connection that waits for every answer: for the migrator, for tools and for tests, never on an event loop.
///
/// It belongs to one thread at a time. Only its ``CancelHandle`` may be used from elsewhere.
public final class BlockingConnection {
    private let connection: OpaquePointer
    private let noticeHandler: NoticeHandler

    /// Connects.
    ///
    /// - Parameters:
    ///   - conninfo: libpq's connection string, see ``ConnectionSettings``.
    ///   - applicationName: what `pg_stat_activity` shows.
    ///   - sessionSettings: server settings that the session starts with, such as `lock_timeout` and `5s`.
    ///   - onNotice: takes the server's notices and warnings, on the thread that executes; by default none is shown.
    public convenience init(
        _ conninfo: String, applicationName: String = "ieum", sessionSettings: KeyValuePairs<String, String> = [:],
        onNotice: @escaping (DatabaseNotice) -> Void = { _ in }
    ) throws(DatabaseError) {
        try self.init(
            ConnectionSettings(conninfo, applicationName: applicationName, sessionSettings: sessionSettings),
            onNotice: onNotice)
    }

    /// Connects.
    public init(
        _ settings: ConnectionSettings, onNotice: @escaping (DatabaseNotice) -> Void = { _ in }
    ) throws(DatabaseError) {
        connection = try ConnectionAttempt.blocking(settings)
        noticeHandler = NoticeHandler(onNotice)
        noticeHandler.install(on: connection)
    }

    deinit {
        PQfinish(connection)
    }

    /// Runs SQL text of any number of statements, as psql does, and gives a result for each, in text form.
    ///
    /// Without a BEGIN of its own the text is one transaction. The first error ends it and is thrown. `COPY … FROM STDIN`
    /// and `COPY … TO STDOUT` fail with a clear error and leave the connection usable.
    @discardableResult
    public func execute(_ sql: String) throws(DatabaseError) -> [QueryResult] {
        guard !sql.utf8.contains(0) else {
            throw DatabaseError(.protocol, "the SQL holds a NUL byte, where it would end unseen")
        }
        guard PQsendQuery(connection, sql) == 1 else { throw DatabaseError(connection: connection) }
        return try results()
    }

    /// Runs one statement with binary parameters `$1`, `$2` and so on, and gives its rows in binary.
    @discardableResult
    public func query(_ sql: String, _ parameters: ParameterList = ParameterList()) throws(DatabaseError) -> QueryResult
    {
        guard !sql.utf8.contains(0) else {
            throw DatabaseError(.protocol, "the SQL holds a NUL byte, where it would end unseen")
        }
        if let problem = parameters.problem { throw problem }
        let sent = parameters.withCArguments { arguments in
            PQsendQueryParams(
                connection, sql, arguments.count, arguments.types, arguments.values, arguments.lengths,
                arguments.formats, 1)
        }
        guard sent == 1 else { throw DatabaseError(connection: connection) }
        guard let result = try results().last else {
            throw DatabaseError(.protocol, "the statement had no result")
        }
        return result
    }

    /// Reads every result of what was sent, to the end even after an error, so that the connection is idle again.
    private func results() throws(DatabaseError) -> [QueryResult] {
        var results: [QueryResult] = []
        var failure: DatabaseError?
        while let result = PQgetResult(connection) {
            let status = PQresultStatus(result)
            switch status {
            case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY, PGRES_SINGLE_TUPLE:
                results.append(QueryResult(taking: result))
                continue
            case PGRES_COPY_IN, PGRES_COPY_BOTH:
                // The server answers with an error; the loop then goes on to its end.
                if PQputCopyEnd(connection, "COPY from the client is not supported here") != 1 {
                    failure = failure ?? DatabaseError(connection: connection)
                }
            case PGRES_COPY_OUT:
                failure = failure ?? DatabaseError(.protocol, "COPY to the client is not supported here")
                discardCopyData()
            default:
                failure = failure ?? DatabaseError(result: result)
            }
            PQclear(result)
            // A connection that broke in a COPY would answer with the same result for ever.
            if PQstatus(connection) == CONNECTION_BAD && status != PGRES_FATAL_ERROR { break }
        }
        if var failure {
            failure.completedStatements = results.count
            throw failure
        }
        if PQstatus(connection) == CONNECTION_BAD { throw DatabaseError(connection: connection) }
        return results
    }

    private func discardCopyData() {
        var row: UnsafeMutablePointer<CChar>?
        while PQgetCopyData(connection, &row, 0) > 0 {
            PQfreemem(row)
            row = nil
        }
    }
}

extension BlockingConnection {
    /// Where a session stands between statements.
    public enum TransactionStatus: Sendable {
        /// No transaction.
        case idle
        /// A statement is under way.
        case active
        /// Inside a transaction.
        case inTransaction
        /// Inside a transaction that failed and takes only its end.
        case inFailedTransaction
        /// The connection is lost.
        case unknown
    }

    /// Where the session stands.
    public var transactionStatus: TransactionStatus {
        switch PQtransactionStatus(connection) {
        case PQTRANS_IDLE: .idle
        case PQTRANS_ACTIVE: .active
        case PQTRANS_INTRANS: .inTransaction
        case PQTRANS_INERROR: .inFailedTransaction
        default: .unknown
        }
    }

    /// The process that serves this connection.
    public var backendPID: Int32 { PQbackendPID(connection) }

    /// The server's version as a number: 150018 is 15.18.
    public var serverVersion: Int { Int(PQserverVersion(connection)) }

    /// Whether the connection was up when last used. A connection that is lost stays lost.
    public var isConnected: Bool { PQstatus(connection) == CONNECTION_OK }

    /// A handle by which another thread may cancel what this connection is doing.
    public func cancelHandle() throws(DatabaseError) -> CancelHandle {
        guard let handle = CancelHandle(connection) else { throw DatabaseError(connection: connection) }
        return handle
    }

    /// A name as a quoted SQL identifier.
    public static func quoteIdentifier(_ name: String) -> String {
        "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    }

    /// A text as a quoted SQL literal, whatever `standard_conforming_strings` says.
    public static func quoteLiteral(_ text: String) -> String {
        let quoted = text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''")
        guard quoted.contains("\\") else { return "'\(quoted)'" }
        return " E'" + quoted.split(separator: "\\", omittingEmptySubsequences: false).joined(separator: "\\\\") + "'"
    }
}

/// Carries notices from libpq to a closure. Whoever owns the connection owns this too, and longer.
final class NoticeHandler {
    private let onNotice: (DatabaseNotice) -> Void

    init(_ onNotice: @escaping (DatabaseNotice) -> Void) {
        self.onNotice = onNotice
    }

    /// Without this, libpq writes notices to stderr.
    func install(on connection: OpaquePointer) {
        PQsetNoticeReceiver(
            connection,
            { context, result in
                guard let context, let result else { return }
                Unmanaged<NoticeHandler>.fromOpaque(context).takeUnretainedValue().onNotice(
                    DatabaseNotice(result: result))
            },
            Unmanaged.passUnretained(self).toOpaque())
    }
}
