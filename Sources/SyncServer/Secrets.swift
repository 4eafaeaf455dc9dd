import COpenSSL

/// Random bytes and digests, from OpenSSL.
enum Secrets {
    /// Bytes nobody can guess.
    /// - Throws: ``SecretsError`` when the system has no randomness to give.
    static func randomBytes(_ count: Int) throws(SecretsError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        guard RAND_bytes(&bytes, Int32(count)) == 1 else { throw SecretsError() }
        return bytes
    }

    /// SHA-256: 32 bytes.
    static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        SHA256(bytes, bytes.count, &digest)
        return digest
    }
}

/// The system gave no random bytes.
struct SecretsError: Error {}
