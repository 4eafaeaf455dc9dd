/// Why a command of the migrator did not do what it was asked: what kind of failure, and every problem that was found.
public struct MigrationError: Error, Equatable, Sendable {
    /// The kinds of failure; each has an exit code of its own.
    public enum Kind: Equatable, Sendable {
        /// A file is at fault: its SQL failed, or its name or content cannot be accepted.
        case file
        /// The command line, or what it names, cannot be used.
        case usage
        /// The history in the database and the files disagree; nothing was run.
        case conflict
        /// The database cannot be reached, refused the session, or the connection was lost.
        case connection
        /// Another run held the lock for longer than this one was told to wait.
        case lockTimeout
        /// Stopped by a signal, named by its number.
        case interrupted(signal: Int32)
    }

    /// What kind of failure this is.
    public var kind: Kind
    /// Everything that was found, in the order of the files. Never empty.
    public var problems: [Problem]
    /// The files that ``Migrator/up(to:)`` applied before it failed; they stay applied.
    public var applied: [Migrator.UpResult.Applied] = []

    /// A failure with all its problems.
    public init(_ kind: Kind, _ problems: [Problem]) {
        self.kind = kind
        self.problems = problems
    }

    /// A failure with one problem.
    public init(_ kind: Kind, _ message: String, hint: String? = nil) {
        self.init(kind, [Problem(message, hint: hint)])
    }

    /// The status that a program ends with on this failure.
    public var exitCode: Int32 {
        switch kind {
        case .file: 1
        case .usage: 2
        case .conflict: 3
        case .connection: 4
        case .lockTimeout: 5
        case .interrupted(let signal): 128 &+ signal
        }
    }
}

extension MigrationError: CustomStringConvertible {
    /// Every problem as a person reads it, one after the other.
    public var description: String {
        problems.map(\.description).joined(separator: "\n")
    }
}
