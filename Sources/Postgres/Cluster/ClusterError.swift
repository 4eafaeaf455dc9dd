import Glibc

/// Why a private PostgreSQL could not be prepared, started or stopped, in words for an operator.
public struct ClusterError: Error, Equatable, Sendable, CustomStringConvertible {
    /// One line, factual.
    public var message: String
    /// What to do about it: a full sentence.
    public var hint: String?

    /// Makes an error.
    public init(_ message: String, hint: String? = nil) {
        self.message = message
        self.hint = hint
    }

    /// A failed system call, by its `errno`.
    init(_ doing: String, errno code: Int32) {
        self.init("\(doing): \(String(cString: strerror(code)))")
    }

    /// Message and hint in one line.
    public var description: String {
        hint.map { "\(message). \($0)" } ?? message
    }
}
