/// A five-character condition code of the SQL standard, as PostgreSQL sends it with every error.
///
/// Decide by these and never by a message: messages are translated, and constraint names change on a distributed
/// database. Source: PostgreSQL, appendix A, "PostgreSQL Error Codes".
public struct SQLState: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// Five characters, digits and upper-case ASCII letters.
    public let rawValue: String

    /// Wraps a code; any text is accepted, since a server may send codes of its own.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// The first two characters, which name the kind of condition.
    public var conditionClass: Substring { rawValue.prefix(2) }

    /// The code itself.
    public var description: String { rawValue }

    /// Whether the same work, sent again on a live connection, may succeed without anyone changing anything.
    ///
    /// True for deadlocks, serialization failures, unique violations (another transaction won the race), lost
    /// connections (class 08) and a server that shuts down, crashed or is starting.
    public var isRetryable: Bool {
        switch self {
        case .deadlockDetected, .serializationFailure, .uniqueViolation, .adminShutdown, .crashShutdown,
            .cannotConnectNow:
            true
        default:
            conditionClass == "08"
        }
    }
}

extension SQLState {
    /// Whether the server takes no changes for now, whatever they are: it is a standby or set read-only, or its disk is full or
    /// fails. Nothing is wrong with the work; somebody has to look after the server, or the address to name another one.
    public var isRefusalOfChanges: Bool {
        switch self {
        case .readOnlySQLTransaction, .diskFull, .ioError: true
        default: false
        }
    }

    /// 08006: the connection failed.
    public static let connectionFailure = SQLState(rawValue: "08006")
    /// 08P01: the server could not follow the protocol.
    public static let protocolViolation = SQLState(rawValue: "08P01")
    /// 22003: a number is out of its type's range.
    public static let numericValueOutOfRange = SQLState(rawValue: "22003")
    /// 22008: a date or time is out of range.
    public static let datetimeFieldOverflow = SQLState(rawValue: "22008")
    /// 22021: bytes that are no text in the database's encoding; a NUL byte counts.
    public static let characterNotInRepertoire = SQLState(rawValue: "22021")
    /// 22P02: a text that its type cannot read, such as broken JSON.
    public static let invalidTextRepresentation = SQLState(rawValue: "22P02")
    /// 22P03: bytes that are not the binary form of their type.
    public static let invalidBinaryRepresentation = SQLState(rawValue: "22P03")
    /// 22P05: a character that the server's encoding does not have, such as `\u0000` in JSON.
    public static let untranslatableCharacter = SQLState(rawValue: "22P05")
    /// 23502: NULL in a column that forbids it.
    public static let notNullViolation = SQLState(rawValue: "23502")
    /// 23503: a row points at none, or is pointed at.
    public static let foreignKeyViolation = SQLState(rawValue: "23503")
    /// 23505: the key is there already.
    public static let uniqueViolation = SQLState(rawValue: "23505")
    /// 23514: a CHECK constraint does not hold.
    public static let checkViolation = SQLState(rawValue: "23514")
    /// 25001: the statement cannot run inside a transaction.
    public static let activeSQLTransaction = SQLState(rawValue: "25001")
    /// 25006: a write on a read-only transaction or standby.
    public static let readOnlySQLTransaction = SQLState(rawValue: "25006")
    /// 25P02: the transaction failed earlier and takes only its end.
    public static let inFailedSQLTransaction = SQLState(rawValue: "25P02")
    /// 28000: the role may not connect.
    public static let invalidAuthorization = SQLState(rawValue: "28000")
    /// 28P01: the password is wrong.
    public static let invalidPassword = SQLState(rawValue: "28P01")
    /// 3D000: no such database.
    public static let invalidCatalogName = SQLState(rawValue: "3D000")
    /// 3F000: no such schema.
    public static let invalidSchemaName = SQLState(rawValue: "3F000")
    /// 40001: the transaction could not be put in a serial order.
    public static let serializationFailure = SQLState(rawValue: "40001")
    /// 40P01: two transactions waited for each other, and this one gave way.
    public static let deadlockDetected = SQLState(rawValue: "40P01")
    /// 42501: the role lacks the right.
    public static let insufficientPrivilege = SQLState(rawValue: "42501")
    /// 42601: the SQL cannot be parsed.
    public static let syntaxError = SQLState(rawValue: "42601")
    /// 42703: no such column.
    public static let undefinedColumn = SQLState(rawValue: "42703")
    /// 42883: no such function.
    public static let undefinedFunction = SQLState(rawValue: "42883")
    /// 42P01: no such table.
    public static let undefinedTable = SQLState(rawValue: "42P01")
    /// 42P04: a database of that name is there already.
    public static let duplicateDatabase = SQLState(rawValue: "42P04")
    /// 42P07: a table of that name is there already.
    public static let duplicateTable = SQLState(rawValue: "42P07")
    /// 53100: the disk is full.
    public static let diskFull = SQLState(rawValue: "53100")
    /// 53300: the server's connections are all taken.
    public static let tooManyConnections = SQLState(rawValue: "53300")
    /// 55006: the object is in use.
    public static let objectInUse = SQLState(rawValue: "55006")
    /// 55P03: a lock was not to be had in time.
    public static let lockNotAvailable = SQLState(rawValue: "55P03")
    /// 57014: the statement was cancelled, by request or by a time limit of the server's.
    public static let queryCanceled = SQLState(rawValue: "57014")
    /// 57P01: an administrator ends the connection or the server.
    public static let adminShutdown = SQLState(rawValue: "57P01")
    /// 57P02: another server process crashed, all connections end.
    public static let crashShutdown = SQLState(rawValue: "57P02")
    /// 57P03: the server is starting, stopping or recovering.
    public static let cannotConnectNow = SQLState(rawValue: "57P03")
    /// 58030: the system could not read or write a file.
    public static let ioError = SQLState(rawValue: "58030")
}
