import CLibPQ
import Glibc

/// Whether TLS holds bytes that it has decrypted and libpq has not read yet.
///
/// libpq makes room for 8 KB at least and reads once; of a longer TLS record the rest stays with OpenSSL, where no socket
/// readiness tells of it. PostgreSQL before version 17 writes records of 8 KB, newer ones and proxies of up to 16.
/// OpenSSL is in the process through libpq alone, so its one function that is needed is looked up, not linked.
enum SecureInput {
    private typealias Pending = @convention(c) (UnsafeMutableRawPointer) -> Int32

    private static let pending: Pending? = dlsym(nil, "SSL_pending").map { unsafeBitCast($0, to: Pending.self) }

    static func isWaiting(in connection: OpaquePointer) -> Bool {
        guard PQsslInUse(connection) == 1, let session = PQsslStruct(connection, "OpenSSL"), let pending else {
            return false
        }
        return pending(session) > 0
    }
}
