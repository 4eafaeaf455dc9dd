import Wire

/// Why the talk with a server did not lead to an answer.
package enum ClientError: Error, Hashable, Sendable {
    /// No connection came about: no such name, nobody listens, no way there.
    case unreachable(String)
    /// No secure connection came about.
    case insecure(SecurityFailure)
    /// The server was silent for this long where it should have said something.
    case timedOut(after: Duration)
    /// The server said something that the protocol does not allow here.
    case protocolViolation(String)
    /// The server refused the command.
    case server(WireError)
    /// The connection ended before the answer; with the reason if the server told one (`* BYE`).
    case connectionClosed(WireError?)

    /// What is wrong: one line, factual. Text from the peer is in it as it came.
    package var message: String {
        switch self {
        case .unreachable(let reason): "the server cannot be reached: \(reason)"
        case .insecure(let failure): "there is no secure connection: \(failure.message)"
        case .timedOut(let duration): "the server did not answer within \(duration.shortText)"
        case .protocolViolation(let what): "the server does not speak this protocol: \(what)"
        case .server(let error): "\(error.message) (\(error.code))"
        case .connectionClosed(nil): "the server closed the connection before it answered"
        case .connectionClosed(let reason?): "the server closed the connection: \(reason.message) (\(reason.code))"
        }
    }

    /// What to do: a full sentence.
    package var hint: String? {
        switch self {
        case .unreachable: "See whether ieumd runs there and the address is right."
        case .insecure(let failure): failure.hint
        case .timedOut, .connectionClosed(nil): "Try again."
        case .protocolViolation: "See whether ieumd is what listens there, and of the same version as this program."
        case .server(let error), .connectionClosed(let error?): error.hint
        }
    }

    /// Whether the same request may succeed later, without anything being changed by the player.
    package var isRetryable: Bool {
        switch self {
        case .unreachable, .timedOut, .connectionClosed(nil): true
        case .connectionClosed(let reason?): reason.signOut == nil
        case .protocolViolation: false
        case .insecure(let failure): failure.isRetryable
        case .server(let error): error.isPassing
        }
    }
}

extension WireError {
    /// Whether the server may accept the same command a little later, since the trouble is its own, or one of too much at once.
    var isPassing: Bool {
        switch code {
        case .rateLimited, .busy, .unavailable, .tooManyConnections, .shuttingDown, .idleTimeout, .epochChanged: true
        default: false
        }
    }
}

extension Duration {
    /// `10 s`, `0.25 s`
    package var shortText: String {
        let milliseconds =
            components.seconds.multipliedReportingOverflow(by: 1_000).partialValue
            &+ components.attoseconds / 1_000_000_000_000_000
        guard milliseconds % 1_000 != 0 else { return "\(components.seconds) s" }
        return "\(Double(milliseconds) / 1_000) s"
    }
}
