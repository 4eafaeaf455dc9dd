/// What happens while a migrator works, told as it happens.
public enum Event: Equatable, Sendable {
    /// Another run holds the lock, or a session that a dead run left behind is still at work. Told at once and every 5 seconds.
    case waiting(for: LockHolder, since: Duration)
    /// A file begins; `statement` is where it goes on, from 1, when it was begun by an earlier run.
    case started(file: String, mode: MigrationFile.Mode, resumingAt: Int?)
    /// A statement of a file without a transaction begins.
    case statementStarted(file: String, number: Int, of: Int, line: Int)
    /// A file could not get its locks and is tried again after a pause.
    case retrying(file: String, attempt: Int, of: Int, pause: Duration, problem: Problem)
    /// A file is done and recorded.
    case applied(file: String, milliseconds: Int64)
    /// The server said something beside its answers.
    case notice(file: String, severity: String, message: String)
    /// Something that an operator should know.
    case warning(String)
}

/// A session that keeps a run waiting.
public struct LockHolder: Equatable, Sendable {
    /// Its process on the server; nil when it cannot be seen.
    public var processID: Int32?
    /// The program that it calls itself.
    public var applicationName: String?
    /// Since when it has been there, in microseconds since 1970 by the server's clock.
    public var since: Int64?
    /// Whether it is a session that a run left behind, rather than a run.
    public var isLeftBehind: Bool
}

extension LockHolder: CustomStringConvertible {
    /// One line for a person.
    public var description: String {
        var text = isLeftBehind ? "a session that an earlier run left behind, still at work" : "another run"
        var facts: [String] = []
        if let processID { facts.append("pid \(processID)") }
        if let applicationName, !applicationName.isEmpty { facts.append(applicationName) }
        if let since { facts.append("since \(Timestamp.text(microseconds: since))") }
        if !facts.isEmpty { text += " (\(facts.joined(separator: ", ")))" }
        return text
    }
}
