import Foundation

/// What all sessions of a server share: who it is and what it bounds. Immutable; a session holds a reference, eight bytes.
public final class ServerDescription: Sendable {
    /// The server's version, e.g. `0.1.0`.
    public let version: String
    /// This life of the database.
    public let epoch: UUID
    /// What is bounded on a connection.
    public let limits: Limits
    let parser: CommandParser

    /// Describes a server.
    public init(version: String, epoch: UUID, limits: Limits = Limits()) {
        self.version = version
        self.epoch = epoch
        self.limits = limits
        parser = CommandParser(limits: limits)
    }

    /// What the greeting and the answer to `HELLO` tell.
    public func greeting(at now: Timestamp) -> Greeting {
        Greeting(
            server: version, epoch: epoch, maxLineBytes: limits.maxLineBytes, maxStateBytes: limits.maxStateBytes,
            time: now)
    }
}
