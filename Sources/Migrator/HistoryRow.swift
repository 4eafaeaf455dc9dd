/// What the database remembers of one migration.
public struct HistoryRow: Equatable, Sendable {
    /// Whether the file is done.
    public enum State: String, Sendable {
        /// Done.
        case applied
        /// A file without a transaction that was begun and not finished.
        case running
    }

    /// How the file came to its state.
    public enum Mode: String, Sendable {
        /// Run in one transaction.
        case transaction
        /// Run statement by statement.
        case noTransaction = "no-transaction"
        /// Taken as there when the set was first put on an existing database.
        case baseline
        /// Declared applied by a person.
        case resolved
    }

    /// The file's version.
    public var version: Version
    /// The file's name when it was run.
    public var name: String
    /// The file's checksum when it was run.
    public var checksum: Checksum
    /// Whether it is done.
    public var state: State
    /// How it was done.
    public var mode: Mode
    /// When it was done, or begun while it is running: microseconds since 1970 by the server's clock.
    public var appliedAt: Int64
    /// How long it took, in milliseconds.
    public var durationMilliseconds: Int64
    /// The role that ran it.
    public var appliedBy: String
    /// The version of the program that ran it.
    public var applicationVersion: String?
    /// How far a file without a transaction has come.
    public var progress: StatementProgress

    /// A row with nothing but what the plan needs.
    init(
        version: Version, name: String, checksum: Checksum, state: State = .applied, mode: Mode = .transaction,
        appliedAt: Int64 = 0, durationMilliseconds: Int64 = 0, appliedBy: String = "",
        applicationVersion: String? = nil,
        progress: StatementProgress = StatementProgress()
    ) {
        self.version = version
        self.name = name
        self.checksum = checksum
        self.state = state
        self.mode = mode
        self.appliedAt = appliedAt
        self.durationMilliseconds = durationMilliseconds
        self.appliedBy = appliedBy
        self.applicationVersion = applicationVersion
        self.progress = progress
    }
}

/// How far a file that is run statement by statement has come.
public struct StatementProgress: Equatable, Sendable {
    /// How many of its statements are done.
    public var count = 0
    /// A hash over those statements, each chained to the one before; empty when there are none.
    public var hash = ""
    /// The statement that was sent outside a transaction and whose end is not recorded.
    public var inFlight: String?

    /// Takes in one more statement as done.
    mutating func append(_ statement: some Collection<UInt8>) {
        count += 1
        hash = Checksum(of: Array(hash.utf8) + [UInt8(ascii: "\n")] + Array(statement)).hex
        inFlight = nil
    }

    /// Whether the statements of a script begin with the ones that are done.
    func isPrefix(of script: SQLScript, in bytes: [UInt8]) -> Bool {
        let statements = script.statements
        guard (0...statements.count).contains(count) else { return false }
        var chain = StatementProgress()
        for statement in statements.prefix(count) { chain.append(bytes[statement.range]) }
        return chain.hash == hash
    }
}
