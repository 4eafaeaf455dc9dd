import COpenSSL

/// A client's side of TLS: whom it trusts, and its own certificate where servers want one.
public final class TLSClientContext: TLSContext {
    /// What makes a server's certificate a good one.
    public enum Trust: Hashable, Sendable {
        /// An authority that this system trusts has issued it, for the server's name.
        case system
        /// An authority in a PEM file has issued it, for the server's name.
        case authorities(file: String)
        /// It is this very one. Neither its name nor its dates nor its issuer matter.
        case pinned(CertificateFingerprint)
    }

    /// What makes a server's certificate a good one.
    let trust: Trust

    /// Sets a client's side up.
    /// - Parameters:
    ///   - trust: what makes a server's certificate a good one.
    ///   - protocolName: what is spoken over TLS, e.g. `ieum/1`.
    ///   - certificate: PEM files of a certificate and its key, for servers that want one.
    public init(
        trust: Trust, protocolName: String, certificate: (file: String, key: String)? = nil
    ) throws(TLSError) {
        self.trust = trust
        try super.init(method: TLS_client_method(), protocolName: protocolName, options: ieum_ssl_client_options)
        switch trust {
        case .system:
            guard SSL_CTX_set_default_verify_paths(handle) == 1 else {
                throw .openSSL("the system's authorities cannot be found")
            }
            SSL_CTX_set_verify(handle, SSL_VERIFY_PEER, nil)
        case .authorities(let file):
            try useAuthorities(in: file)
            SSL_CTX_set_verify(handle, SSL_VERIFY_PEER, nil)
        case .pinned:
            // Compared once the handshake has proved that the server has the key.
            SSL_CTX_set_verify(handle, SSL_VERIFY_NONE, nil)
        }
        if let certificate { try use(certificate: certificate.file, key: certificate.key) }
        SSL_CTX_set_alpn_protos(handle, protocols.baseAddress, UInt32(protocols.count))
    }

    /// Prepares a connection: the name to ask for (SNI), and the name or address that the certificate must carry.
    func prepare(_ ssl: OpaquePointer, host: String) throws(TLSError) {
        // A zone is about this machine's interfaces, and in no certificate.
        let name = String(host.prefix { $0 != "%" })
        let isNumeric = SocketAddress(numericHost: name, port: 0) != nil
        if !isNumeric {
            let isSet = name.withCString {
                SSL_ctrl(
                    ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name),
                    UnsafeMutableRawPointer(mutating: $0))
            }
            guard isSet == 1 else { throw .openSSL("\(name) is no name of a server") }
        }
        if case .pinned = trust { return }
        let parameters = SSL_get0_param(ssl)
        X509_VERIFY_PARAM_set_hostflags(
            parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
        let isSet =
            isNumeric
            ? X509_VERIFY_PARAM_set1_ip_asc(parameters, name)
            : X509_VERIFY_PARAM_set1_host(parameters, name, name.utf8.count)
        guard isSet == 1 else { throw .openSSL("\(name) is no name of a server") }
    }

    /// Compares a server's certificate with the pinned one.
    func checkPin(_ ssl: OpaquePointer) throws(TLSError) {
        guard case .pinned(let pinned) = trust else { return }
        guard let certificate = SSL_get1_peer_certificate(ssl) else {
            throw TLSError(.pinMismatch, "the server has shown no certificate")
        }
        defer { X509_free(certificate) }
        let shown = CertificateFingerprint(of: certificate)
        guard shown == pinned else {
            throw TLSError(.pinMismatch, "the server's certificate is not the pinned one: its fingerprint is \(shown)")
        }
    }
}
