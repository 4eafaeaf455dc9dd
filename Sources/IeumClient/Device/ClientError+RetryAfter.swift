import Wire

extension ClientError {
    /// How long the server asked to wait.
    package var retryAfter: Duration? {
        switch self {
        case .server(let error), .connectionClosed(let error?): error.retryAfter
        default: nil
        }
    }
}
