import COpenSSL

/// Why TLS could not be set up, or a connection could not be kept secure.
public struct TLSError: Error, Hashable, Sendable {
    /// What went wrong, for a program to decide by.
    public enum Kind: Hashable, Sendable, CaseIterable {
        /// A file of a certificate, a key or authorities cannot be used.
        case file
        /// The peer's certificate is no longer valid.
        case certificateExpired
        /// The peer's certificate is not valid yet; or a clock is wrong.
        case certificateNotYetValid
        /// The peer's certificate is for other names.
        case wrongHost
        /// Nobody who is trusted has issued the peer's certificate.
        case unknownIssuer
        /// The peer's certificate is another one than the pinned.
        case pinMismatch
        /// The peer's certificate has another fault.
        case certificateInvalid
        /// The peer does not speak TLS.
        case plainPeer
        /// The peer offers only versions of TLS that are too old, or refuses ours; or ciphers and kinds of certificates.
        case versionTooOld
        /// The peer speaks other protocols over TLS (ALPN).
        case noCommonProtocol
        /// The peer wants a certificate of ours, or we of its, and there is none.
        case clientCertificateRequired
        /// The peer does not accept our certificate.
        case certificateRefused
        /// The handshake took too long.
        case timedOut
        /// The connection ended without the end that TLS has for it: something may be missing.
        case truncated
        /// Anything else, e.g. bytes that are no TLS.
        case other
    }

    /// What went wrong.
    public var kind: Kind
    /// One line, factual.
    public var message: String

    /// Puts an error together.
    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}

extension TLSError: CustomStringConvertible {
    /// The message.
    public var description: String { message }
}

extension TLSError {
    /// What OpenSSL's queue of errors holds, which is emptied.
    static func openSSL(_ fallback: String = "TLS failed") -> TLSError {
        let code = ERR_peek_last_error()
        defer { ERR_clear_error() }
        guard code != 0 else { return TLSError(.other, fallback) }
        let (kind, words) = meaning(of: ERR_GET_REASON(code))
        return TLSError(kind, words ?? text(code))
    }

    /// OpenSSL's own words for an error.
    static func text(_ code: UInt) -> String {
        ERR_reason_error_string(code).map { String(cString: $0) } ?? "OpenSSL error \(code)"
    }

    /// What an alert of the peer's, or a finding of ours, comes to; no words where OpenSSL's will do.
    private static func meaning(of reason: Int32) -> (Kind, String?) {
        switch reason {
        case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_VERSION_TOO_LOW,
            SSL_R_NO_PROTOCOLS_AVAILABLE:
            (.versionTooOld, "there is no version of TLS that both sides allow; 1.2 is the oldest")
        case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY, SSL_R_NO_SHARED_CIPHER,
            SSL_R_NO_SUITABLE_KEY_SHARE, SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, SSL_R_NO_SUITABLE_GROUPS,
            SSL_R_TLSV1_ALERT_INAPPROPRIATE_FALLBACK, SSL_R_INAPPROPRIATE_FALLBACK:
            (.versionTooOld, "there is no version, cipher or kind of certificate of TLS that both sides allow")
        case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST:
            (.plainPeer, "the other side does not speak TLS")
        case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL, SSL_R_NO_APPLICATION_PROTOCOL:
            (.noCommonProtocol, "the other side speaks another protocol over TLS")
        case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
            (.clientCertificateRequired, "a client certificate is required, and there is none")
        case SSL_R_TLSV1_ALERT_UNKNOWN_CA, SSL_R_TLSV1_ALERT_DECRYPT_ERROR, SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,
            SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,
            SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
            (.certificateRefused, "the other side does not accept the certificate")
        default: (.other, nil)
        }
    }

    /// What is wrong with a peer's certificate, by a code of `X509_verify_cert_error_string`.
    static func verification(_ code: Int, host: String?) -> TLSError {
        let isClient = host == nil
        let who = isClient ? "the client's certificate" : "the server's certificate"
        switch Int32(truncatingIfNeeded: code) {
        case X509_V_ERR_CERT_HAS_EXPIRED: return TLSError(.certificateExpired, "\(who) has expired")
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return TLSError(.certificateNotYetValid, "\(who) is not valid yet, by this machine's clock")
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            return TLSError(.wrongHost, "\(who) is not for \(host ?? "it")")
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED, X509_V_ERR_CERT_SIGNATURE_FAILURE:
            return TLSError(.unknownIssuer, "\(who) was issued by nobody that is trusted here")
        default:
            let words = X509_verify_cert_error_string(code).map { String(cString: $0) } ?? "error \(code)"
            return TLSError(.certificateInvalid, "\(who) is not good: \(words)")
        }
    }
}
