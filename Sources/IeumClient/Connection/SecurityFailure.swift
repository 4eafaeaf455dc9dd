/// Why there is no secure connection to a server.
public struct SecurityFailure: Error, Hashable, Sendable {
    /// What is wrong, for a program to decide by.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// The server's certificate is no longer valid.
        case certificateExpired = "certificate-expired"
        /// The server's certificate is not valid yet, by this machine's clock.
        case certificateNotYetValid = "certificate-not-yet-valid"
        /// The server's certificate is for other names than the one that was asked for.
        case wrongHost = "certificate-wrong-host"
        /// Nobody who is trusted has issued the server's certificate.
        case unknownIssuer = "certificate-unknown-issuer"
        /// The server's certificate is not the pinned one.
        case fingerprintMismatch = "certificate-not-pinned"
        /// The server's certificate has another fault.
        case certificateInvalid = "certificate-invalid"
        /// The server does not speak TLS.
        case serverIsPlain = "server-is-plain"
        /// The server speaks TLS, and was spoken to plainly.
        case serverNeedsTLS = "tls-required"
        /// There is no version, cipher or kind of certificate of TLS that both sides allow.
        case versionTooOld = "tls-version"
        /// What listens there speaks another protocol over TLS.
        case otherProtocol = "tls-protocol"
        /// The server takes clients with a certificate only, and there is none.
        case clientCertificateRequired = "client-certificate-required"
        /// The server does not accept this device's certificate.
        case clientCertificateRefused = "client-certificate-refused"
        /// A file of a certificate, a key or authorities cannot be used.
        case unusableFile = "tls-file"
        /// The connection was cut or disturbed; it may work the next time.
        case disturbed = "tls-disturbed"
    }

    /// What is wrong.
    public var reason: Reason
    /// One line, factual.
    public var message: String

    /// Puts a failure together.
    public init(_ reason: Reason, _ message: String) {
        self.reason = reason
        self.message = message
    }

    /// Whether trying again may help, without anything being changed.
    public var isRetryable: Bool { reason == .disturbed }

    /// What to do: a full sentence.
    package var hint: String? {
        switch reason {
        case .certificateExpired: "The server's operator has to renew it."
        case .certificateNotYetValid: "See whether this machine's clock is right."
        case .wrongHost: "Use the name that the certificate is for."
        case .unknownIssuer:
            """
            Name who issued it with --ca FILE; or pin a self-signed one with --fingerprint, as ieumd cert printed it. If a \
            browser trusts its issuer, the server's file lacks the certificates between.
            """
        case .fingerprintMismatch:
            "Ask the server's operator whether the certificate was changed. If it was not, somebody is in between."
        case .certificateInvalid: "The server's operator has to replace it."
        case .serverIsPlain:
            "See whether the port is right. A server that you trust to be near is reached plainly with --insecure."
        case .serverNeedsTLS: "Say tls://HOST:PORT."
        case .versionTooOld, .otherProtocol:
            "See whether ieumd is what listens there, and of the same version as this program."
        case .clientCertificateRequired:
            "Give one of the server's operator's with --client-cert FILE and --client-key FILE."
        case .clientCertificateRefused: "Ask the server's operator for another one."
        case .unusableFile: nil
        case .disturbed: "Try again."
        }
    }
}
