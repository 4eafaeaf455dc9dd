import CLibPQ

/// What went wrong with a database: one type for the server's errors, lost connections and answers we cannot read.
///
/// A C call's failure becomes one of these where the call returns, and nowhere else. Passwords, connection strings
/// and parameters are never put in. The server itself may quote a row in ``detail``, ``context`` and sometimes
/// ``message``; ``description``, meant for logs, leaves detail and context out.
public struct DatabaseError: Error, Equatable, Sendable {
    /// Who failed.
    public enum Kind: Hashable, Sendable {
        /// The connection could not be made, or was lost; what was under way may or may not have happened.
        case connection
        /// The server answered with an error; the work was rolled back.
        case server
        /// The answer, or the way it was asked for, does not fit: a wrong type, a NULL, an unexpected state.
        case `protocol`
        /// The statement was cancelled, by request or by the server's own time limit (57014).
        case cancelled
        /// The server did not answer within our time limit.
        case timeout
    }

    /// Who failed.
    public var kind: Kind
    /// One line without the severity, factual.
    public var message: String
    /// The server's code; nil where no server spoke.
    public var sqlState: SQLState?
    /// `ERROR`, `FATAL` or `PANIC`, untranslated; nil where no server spoke.
    public var severity: String?
    /// The server's second line, which may quote values of the row.
    public var detail: String?
    /// What to do about it, if the server or we know.
    public var hint: String?
    /// The constraint that did not hold.
    public var constraint: String?
    /// The table it was about.
    public var table: String?
    /// The column it was about.
    public var column: String?
    /// Where in the SQL text, counted in characters (not bytes) from 1, across all statements of the text.
    public var position: Int?
    /// How many statements of the text were done before the one that failed; nil where no text was under way.
    public var completedStatements: Int?
    /// Where in functions it happened, innermost first, one a line.
    public var context: String?

    /// Makes an error of our own.
    public init(_ kind: Kind, _ message: String, sqlState: SQLState? = nil, hint: String? = nil) {
        self.kind = kind
        self.message = message
        self.sqlState = sqlState
        self.hint = hint
    }

    /// Whether the same work may succeed when sent again, on a new connection if this one is gone.
    ///
    /// After a lost connection nobody knows whether the work was done: send again only what repeats safely.
    public var isRetryable: Bool {
        switch kind {
        case .connection: sqlState.map { $0.isRetryable || $0.conditionClass == "53" } ?? true
        case .timeout: true
        case .server: sqlState?.isRetryable ?? false
        case .cancelled, .protocol: false
        }
    }
}

extension DatabaseError {
    /// Whether the server takes no changes for now, see ``SQLState/isRefusalOfChanges``.
    public var isRefusalOfChanges: Bool { sqlState?.isRefusalOfChanges ?? false }
}

extension DatabaseError: CustomStringConvertible {
    /// One line for a log: code, message, constraint and hint; no detail and no context, which may quote rows.
    public var description: String {
        var line = sqlState.map { "\($0): \(message)" } ?? message
        if let constraint { line += " (constraint \(constraint))" }
        if let hint { line += ". \(hint)" }
        return line
    }
}

extension DatabaseError {
    /// Reads the fields of a result with an error status. The result stays the caller's.
    init(result: OpaquePointer) {
        func field(_ field: DiagnosticField) -> String? {
            PQresultErrorField(result, field.rawValue).map { String(cString: $0) }
        }
        let sqlState = field(.sqlState).map(SQLState.init(rawValue:))
        let message = field(.message) ?? Self.firstLine(PQresultErrorMessage(result))
        // libpq makes results of its own, without a code, when the connection breaks.
        let kind: Kind =
            switch sqlState {
            case nil: .connection
            case .queryCanceled?: .cancelled
            case .adminShutdown?, .crashShutdown?, .cannotConnectNow?: .connection
            case let state?: state.conditionClass == "08" && state != .protocolViolation ? .connection : .server
            }
        self.init(kind, message, sqlState: sqlState, hint: field(.hint))
        severity = field(.severity)
        detail = field(.detail)
        constraint = field(.constraint)
        table = field(.table)
        column = field(.column)
        position = field(.position).flatMap { Int($0) }
        context = field(.context)
    }

    /// Reads what libpq last complained about on a connection.
    init(connection: OpaquePointer?, kind: Kind = .connection) {
        self.init(kind, Self.firstLine(PQerrorMessage(connection)))
    }

    /// The first line of a C text, without the end of the line; a lost connection's further lines are advice.
    private static func firstLine(_ text: UnsafePointer<CChar>?) -> String {
        let whole = text.map { String(cString: $0) } ?? ""
        let line = whole.split(separator: "\n", maxSplits: 1).first.map(String.init) ?? ""
        return line.isEmpty ? "the database connection failed without a message" : line
    }
}

/// The letters by which libpq names an error's fields: `PG_DIAG_…` in postgres_ext.h, which are character macros that
/// Swift does not import. They are part of the wire protocol ("Error and Notice Message Fields") and do not change.
enum DiagnosticField: Int32 {
    case severity = 0x56  // V, never translated
    case sqlState = 0x43  // C
    case message = 0x4D  // M
    case detail = 0x44  // D
    case hint = 0x48  // H
    case position = 0x50  // P
    case context = 0x57  // W
    case table = 0x74  // t
    case column = 0x63  // c
    case constraint = 0x6E  // n
}

/// A message that the server sends beside its answers: NOTICE, WARNING, INFO and the like.
public struct DatabaseNotice: Equatable, Sendable {
    /// `NOTICE`, `WARNING`, `INFO`, `LOG` or `DEBUG`, untranslated.
    public var severity: String
    /// The server's code; `00000` for plain notices.
    public var sqlState: SQLState?
    /// One line, factual.
    public var message: String
    /// A second line, if there is one.
    public var detail: String?
    /// What to do about it, if the server knows.
    public var hint: String?

    /// Reads the fields of a result that libpq handed to a notice receiver, which stays libpq's.
    init(result: OpaquePointer) {
        func field(_ field: DiagnosticField) -> String? {
            PQresultErrorField(result, field.rawValue).map { String(cString: $0) }
        }
        severity = field(.severity) ?? "NOTICE"
        sqlState = field(.sqlState).map(SQLState.init(rawValue:))
        message = field(.message) ?? String(cString: PQresultErrorMessage(result))
        detail = field(.detail)
        hint = field(.hint)
    }
}
