import COpenSSL

/// A server's side of TLS: its certificate, and whose clients it takes.
///
/// A client that offers protocols by ALPN must offer ours; one without ALPN is taken, so that a person with
/// `openssl s_client` can speak to it.
public final class TLSServerContext: TLSContext {
    /// The PEM files of a server.
    public struct Files: Hashable, Sendable {
        /// The certificate, and behind it those that lead to its authority.
        public var certificate: String
        /// The certificate's key, for its owner alone.
        public var key: String
        /// The authorities of clients' certificates; nil when clients need none.
        public var clientAuthorities: String?

        /// Names the files.
        public init(certificate: String, key: String, clientAuthorities: String? = nil) {
            self.certificate = certificate
            self.key = key
            self.clientAuthorities = clientAuthorities
        }
    }

    /// What a peer is told that does not speak TLS, before it is hung up on.
    let plainAnswer: [UInt8]
    /// The fingerprint of the certificate.
    public let fingerprint: CertificateFingerprint
    /// When the certificate begins, in seconds since 1970.
    public let notBefore: Int64
    /// When the certificate ends, in seconds since 1970.
    public let notAfter: Int64

    /// Reads the files.
    /// - Parameters:
    ///   - files: certificate, key and, when clients must have certificates, their authorities.
    ///   - protocolName: what is spoken over TLS, e.g. `ieum/1`.
    ///   - plainAnswer: what a peer is told that does not speak TLS.
    public init(files: Files, protocolName: String, plainAnswer: [UInt8]) throws(TLSError) {
        self.plainAnswer = plainAnswer
        let own = try Self.readCertificate(files.certificate)
        (fingerprint, notBefore, notAfter) = own
        try super.init(method: TLS_server_method(), protocolName: protocolName, options: ieum_ssl_server_options)
        SSL_CTX_set_num_tickets(handle, 0)
        try use(certificate: files.certificate, key: files.key)
        if let authorities = files.clientAuthorities {
            try useAuthorities(in: authorities)
            SSL_CTX_set_client_CA_list(handle, SSL_load_client_CA_file(authorities))
            SSL_CTX_set_verify(handle, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        }
        SSL_CTX_set_alpn_select_cb(
            handle,
            { _, chosen, chosenLength, offered, offeredLength, argument in
                guard let chosen, let ours = argument?.assumingMemoryBound(to: UInt8.self) else {
                    return SSL_TLSEXT_ERR_ALERT_FATAL
                }
                var name: UnsafeMutablePointer<UInt8>?
                let status = SSL_select_next_proto(
                    &name, chosenLength, ours, UInt32(ours[0]) + 1, offered, offeredLength)
                guard status == OPENSSL_NPN_NEGOTIATED else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                chosen.pointee = UnsafePointer(name)
                return SSL_TLSEXT_ERR_OK
            }, protocols.baseAddress)
    }

    private static func readCertificate(
        _ path: String
    ) throws(TLSError) -> (fingerprint: CertificateFingerprint, notBefore: Int64, notAfter: Int64) {
        try checkReadable(path, "the certificate")
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let file = BIO_new_file(path, "r") else {
            throw TLSError(.file, "the certificate, \(path), cannot be read: \(EventLoopError(call: "open").message)")
        }
        defer { BIO_free(file) }
        guard let certificate = PEM_read_bio_X509(file, nil, { _, _, _, _ in 0 }, nil) else {
            throw TLSError(.file, "\(path) holds no certificate in PEM form")
        }
        defer { X509_free(certificate) }
        guard let begin = seconds(of: X509_get0_notBefore(certificate)),
            let end = seconds(of: X509_get0_notAfter(certificate))
        else { throw TLSError(.file, "\(path) holds a certificate without times that can be read") }
        return (CertificateFingerprint(of: certificate), begin, end)
    }

    /// A time in seconds since 1970.
    private static func seconds(of time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        guard let epoch = ASN1_TIME_set(nil, 0) else { return nil }
        defer { ASN1_STRING_free(epoch) }
        var (days, seconds): (Int32, Int32) = (0, 0)
        guard ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
        return Int64(days) * 86_400 + Int64(seconds)
    }
}
