import COpenSSL

/// The SHA-256 of a certificate, by which a self-signed one can be pinned.
public struct CertificateFingerprint: Hashable, Sendable {
    /// 32 bytes.
    public let bytes: [UInt8]

    /// Makes a fingerprint of 32 bytes; nil for another number of them.
    public init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    /// Computes a certificate's fingerprint.
    init(of certificate: OpaquePointer) {
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 32
        let isComputed = X509_digest(certificate, EVP_sha256(), &digest, &count) == 1 && count == 32
        precondition(isComputed, "no memory for a digest")
        bytes = digest
    }
}

extension CertificateFingerprint: CustomStringConvertible {
    /// 64 hexadecimal digits in lower case.
    public var description: String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
}
