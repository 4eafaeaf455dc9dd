import Wire

/// Why something that needs the server did not come about.
public enum SyncError: Error, Hashable, Sendable {
    /// This is no address: `HOST:PORT`, with `tls://` or `plain://` before it or without.
    case invalidAddress(String)
    /// This is no token.
    case invalidToken
    /// There is no connection now; the reason, one line.
    case offline(String)
    /// There is no secure connection; the engine goes on trying now and then, since a certificate can be replaced.
    case insecure(SecurityFailure)
    /// The engine was stopped, or is gone.
    case stopped
    /// The device is signed out.
    case signedOut
    /// The games in the store are another player's than the token's.
    case otherPlayer
    /// The server refused it: a code of Documentation/errors.md, one line, and what to do.
    case refused(code: String, message: String, hint: String?)
    /// The store could not be read or written.
    case storage(String)

    init(_ error: ClientError) {
        switch error {
        case .server(let error): self.init(error)
        case .insecure(let failure): self = .insecure(failure)
        case .unreachable, .timedOut, .protocolViolation, .connectionClosed: self = .offline(error.message)
        }
    }

    init(_ error: WireError) {
        self = .refused(code: error.code.rawValue, message: error.message, hint: error.hint)
    }
}

extension SyncError: CustomStringConvertible {
    /// One line, factual.
    public var description: String {
        switch self {
        case .invalidAddress(let text): "\(text) is no address of a server: HOST:PORT"
        case .invalidToken: "this is no token: the 89 characters that a registration or a link gave"
        case .offline(let reason): "there is no connection: \(reason)"
        case .insecure(let failure): "there is no secure connection: \(failure.message)"
        case .stopped: "the sync engine was stopped"
        case .signedOut: "the device is signed out"
        case .otherPlayer: "the store holds the games of another player"
        case .refused(let code, let message, let hint): "\(message) (\(code))" + (hint.map { " \($0)" } ?? "")
        case .storage(let reason): "the store failed: \(reason)"
        }
    }
}
