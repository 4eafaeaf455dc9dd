import COpenSSL
import Glibc

/// What connections of one kind share: versions, ciphers, certificates. It owns an `SSL_CTX`.
///
/// TLS 1.2 and 1.3 only, with forward secrecy and authenticated encryption. Compression and renegotiation are off. So is
/// resumption: connections live long, a handshake with a P-256 key costs a fraction of a millisecond, and a ticket would
/// outlive the certificates and authorities that it was granted by.
public class TLSContext {
    let handle: OpaquePointer
    /// The names of the protocols for ALPN, each with its length before it. OpenSSL reads it as long as `handle` lives.
    let protocols: UnsafeMutableBufferPointer<UInt8>

    /// OpenSSL's own memory goes with the process, and not before, in `exit`: another thread may be speaking TLS still.
    private static let isInitialized = OPENSSL_init_ssl(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1

    init(method: OpaquePointer?, protocolName: String, options: UInt64) throws(TLSError) {
        guard Self.isInitialized else { throw .openSSL("it does not start") }
        guard let handle = SSL_CTX_new(method) else { throw .openSSL("no memory for TLS") }
        self.handle = handle
        let name = Array(protocolName.utf8.prefix(255))
        protocols = .allocate(capacity: name.count + 1)
        _ = protocols.initialize(from: [UInt8(truncatingIfNeeded: name.count)] + name)
        SSL_CTX_set_options(handle, options)
        SSL_CTX_ctrl(handle, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        SSL_CTX_ctrl(handle, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(TLS1_3_VERSION), nil)
        // An idle connection holds no record buffers.
        SSL_CTX_ctrl(handle, SSL_CTRL_MODE, Int(SSL_MODE_RELEASE_BUFFERS), nil)
        SSL_CTX_ctrl(handle, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
        // Nobody is there to be asked for a passphrase.
        SSL_CTX_set_default_passwd_cb(handle) { _, _, _, _ in 0 }
        guard SSL_CTX_set_cipher_list(handle, Self.ciphers) == 1,
            SSL_CTX_set_ciphersuites(handle, Self.suites) == 1,
            Self.groups.withCString({
                SSL_CTX_ctrl(handle, SSL_CTRL_SET_GROUPS_LIST, 0, UnsafeMutableRawPointer(mutating: $0))
            }) == 1
        else { throw .openSSL("OpenSSL lacks the ciphers of TLS 1.2 and 1.3") }
    }

    deinit {
        SSL_CTX_free(handle)
        protocols.deallocate()
    }

    /// For TLS 1.2. AES first; a client without hardware for it, which asks for ChaCha first, gets that.
    private static let ciphers = [
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
    ].joined(separator: ":")
    /// For TLS 1.3.
    private static let suites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
    private static let groups = "X25519:P-256:P-384"

    /// Takes a certificate (with the chain behind it) and its key from PEM files.
    func use(certificate: String, key: String) throws(TLSError) {
        try Self.checkReadable(certificate, "the certificate")
        try Self.checkSecret(key)
        ERR_clear_error()
        guard SSL_CTX_use_certificate_chain_file(handle, certificate) == 1 else {
            throw Self.fileError(certificate, "holds no certificate in PEM form that can be used")
        }
        guard SSL_CTX_use_PrivateKey_file(handle, key, SSL_FILETYPE_PEM) == 1 else {
            let reason = ERR_GET_REASON(ERR_peek_error())
            guard reason != X509_R_KEY_VALUES_MISMATCH else {
                ERR_clear_error()
                throw TLSError(.file, "the key in \(key) is not that of the certificate in \(certificate)")
            }
            throw Self.fileError(key, "holds no private key in PEM form that can be used without a passphrase")
        }
        guard SSL_CTX_check_private_key(handle) == 1 else {
            ERR_clear_error()
            throw TLSError(.file, "the key in \(key) is not that of the certificate in \(certificate)")
        }
        try checkKind(certificate)
    }

    /// OpenSSL takes certificates of other kinds, too, and then finds nothing to shake hands with.
    private func checkKind(_ path: String) throws(TLSError) {
        guard let key = X509_get0_pubkey(SSL_CTX_get0_certificate(handle)) else { return }
        var name = [CChar](repeating: 0, count: 64)
        switch EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_RSA, EVP_PKEY_RSA_PSS, EVP_PKEY_ED25519, EVP_PKEY_ED448: return
        case EVP_PKEY_EC:
            EVP_PKEY_get_group_name(key, &name, name.count, nil)
            let curve = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            guard !["prime256v1", "secp384r1", "secp521r1"].contains(curve) else { return }
            throw Self.uselessKey(path, "the curve \(curve.isEmpty ? "of its own" : curve)")
        default:
            let kind = EVP_PKEY_get0_type_name(key).map { String(cString: $0) } ?? "another kind"
            throw Self.uselessKey(path, kind)
        }
    }

    private static func uselessKey(_ path: String, _ kind: String) -> TLSError {
        ERR_clear_error()
        return TLSError(
            .file,
            "the certificate in \(path) has a key of \(kind), which TLS 1.3 has no use for; take P-256, P-384, Ed25519 or RSA"
        )
    }

    /// Trusts the certificates in a PEM file and no others.
    func useAuthorities(in file: String) throws(TLSError) {
        try Self.checkReadable(file, "the authorities")
        ERR_clear_error()
        guard SSL_CTX_load_verify_locations(handle, file, nil) == 1 else {
            throw Self.fileError(file, "holds no certificates in PEM form that can be used")
        }
    }

    private static func fileError(_ path: String, _ what: String) -> TLSError {
        let code = ERR_peek_last_error()
        ERR_clear_error()
        return TLSError(.file, "\(path) \(what)" + (code == 0 ? "" : " (\(TLSError.text(code)))"))
    }

    /// A pipe would keep who reads it waiting, and holds nothing when it is read again.
    static func checkReadable(_ path: String, _ what: String) throws(TLSError) {
        var status = stat()
        guard access(path, R_OK) == 0, stat(path, &status) == 0 else {
            throw TLSError(.file, "\(what), \(path), cannot be read: \(EventLoopError(call: "open").message)")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw TLSError(.file, "\(what), \(path), is not a regular file")
        }
    }

    /// A key is for its owner alone.
    private static func checkSecret(_ path: String) throws(TLSError) {
        try checkReadable(path, "the key")
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw TLSError(.file, "the key, \(path), cannot be read: \(EventLoopError(call: "stat").message)")
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw TLSError(
                .file, "others than its owner can use the key, \(path) (mode 0\(mode)); run: chmod 600 \(path)")
        }
    }
}
