import COpenSSL
import Glibc

/// Makes certificates with keys of their own (EC, P-256): self-signed ones for trying out, and what tests need beside them.
public struct CertificateMaker {
    /// What a certificate says.
    public struct Request: Sendable {
        /// Names and addresses (subject alternative names), e.g. `games.example.org` and `192.0.2.1`.
        public var hosts: [String]
        /// Its subject's common name, for people; checked by nobody.
        public var commonName: String
        /// When it begins, in seconds from now.
        public var begin: Int = -300
        /// When it ends, in seconds from now.
        public var end: Int
        /// Whether it may issue others.
        public var isAuthority = false

        /// A request for a certificate from now on.
        public init(hosts: [String], commonName: String? = nil, days: Int = 365, isAuthority: Bool = false) {
            self.hosts = hosts
            self.commonName = commonName ?? hosts.first ?? "ieum"
            self.isAuthority = isAuthority
            end = days * 86_400
        }
    }

    /// A certificate with its key.
    public final class Issued {
        let certificate: OpaquePointer
        let key: OpaquePointer

        init(certificate: OpaquePointer, key: OpaquePointer) {
            self.certificate = certificate
            self.key = key
        }

        deinit {
            X509_free(certificate)
            EVP_PKEY_free(key)
        }

        /// The SHA-256 of the certificate.
        public var fingerprint: CertificateFingerprint { CertificateFingerprint(of: certificate) }

        /// The certificate in PEM form.
        public func certificateText() throws(TLSError) -> [UInt8] {
            try pem { PEM_write_bio_X509($0, certificate) }
        }

        /// The key in PEM form (PKCS #8), without a passphrase.
        public func keyText() throws(TLSError) -> [UInt8] {
            try pem { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) }
        }

        private func pem(_ write: (OpaquePointer) -> Int32) throws(TLSError) -> [UInt8] {
            guard let memory = BIO_new(BIO_s_mem()) else { throw .openSSL("no memory for a certificate") }
            defer { BIO_free(memory) }
            guard write(memory) == 1 else { throw .openSSL("the certificate cannot be written") }
            var start: UnsafeMutableRawPointer?
            let count = withUnsafeMutablePointer(to: &start) { BIO_ctrl(memory, BIO_CTRL_INFO, 0, $0) }
            return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
        }
    }

    /// Makes a certificate, signed by `issuer`, or by itself when that is nil.
    /// - Throws: ``TLSError``, for a host that cannot stand in a certificate too.
    public static func make(_ request: Request, issuer: Issued? = nil) throws(TLSError) -> Issued {
        guard let key = ieum_generate_p256_key() else { throw .openSSL("no key can be made") }
        guard let certificate = X509_new() else {
            EVP_PKEY_free(key)
            throw .openSSL("no memory for a certificate")
        }
        let issued = Issued(certificate: certificate, key: key)
        var serial: UInt64 = 0
        guard withUnsafeMutableBytes(of: &serial, { RAND_bytes($0.baseAddress, Int32($0.count)) }) == 1,
            X509_set_version(certificate, 2) == 1,
            ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1) == 1,
            X509_gmtime_adj(X509_getm_notBefore(certificate), request.begin) != nil,
            X509_gmtime_adj(X509_getm_notAfter(certificate), request.end) != nil,
            X509_set_pubkey(certificate, key) == 1
        else { throw .openSSL("the certificate cannot be made") }
        let name = Array(request.commonName.utf8.prefix(64))
        guard
            X509_NAME_add_entry_by_txt(
                X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, name, Int32(name.count), -1, 0) == 1,
            X509_set_issuer_name(certificate, X509_get_subject_name(issuer?.certificate ?? certificate)) == 1
        else { throw .openSSL("\(request.commonName) is no name for a certificate") }
        try addExtensions(of: request, to: certificate, issuer: issuer?.certificate ?? certificate)
        guard X509_sign(certificate, issuer?.key ?? key, EVP_sha256()) > 0 else {
            throw .openSSL("the certificate cannot be signed")
        }
        return issued
    }

    private static func addExtensions(
        of request: Request, to certificate: OpaquePointer, issuer: OpaquePointer
    ) throws(TLSError) {
        var extensions = [
            (NID_basic_constraints, request.isAuthority ? "critical,CA:TRUE" : "critical,CA:FALSE"),
            (NID_key_usage, request.isAuthority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature"),
            (NID_subject_key_identifier, "hash"),
        ]
        if !request.isAuthority { extensions.append((NID_ext_key_usage, "serverAuth,clientAuth")) }
        if !request.hosts.isEmpty {
            extensions.append((NID_subject_alt_name, try alternativeNames(request.hosts)))
        }
        for (kind, value) in extensions {
            var context = X509V3_CTX()
            X509V3_set_ctx(&context, issuer, certificate, nil, nil, 0)
            guard let made = X509V3_EXT_conf_nid(nil, &context, kind, value) else {
                throw .openSSL("\(value) cannot stand in a certificate")
            }
            defer { X509_EXTENSION_free(made) }
            guard X509_add_ext(certificate, made, -1) == 1 else { throw .openSSL("no memory for a certificate") }
        }
    }

    /// `DNS:games.example.org,IP:192.0.2.1`
    private static func alternativeNames(_ hosts: [String]) throws(TLSError) -> String {
        var names: [String] = []
        for host in hosts {
            if SocketAddress(numericHost: host, port: 0) != nil {
                names.append("IP:\(host)")
                continue
            }
            // The text is parsed by OpenSSL: nothing but letters of names may reach it.
            guard (1...253).contains(host.utf8.count), host.utf8.allSatisfy(isNameByte) else {
                throw TLSError(.other, "\(host) is neither a name in ASCII (xn--…) nor an address of a host")
            }
            names.append("DNS:\(host)")
        }
        return names.joined(separator: ",")
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x2A, 0x5F: true
        default: false
        }
    }
}
