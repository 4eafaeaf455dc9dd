import Glibc

/// TCP ports of the loopback for tests.
public enum FreePort {
    /// A port on which nobody listens.
    public static func find() throws -> UInt16 {
        try Listener().port
    }

    /// A socket that accepts connections and never says a word; closed when the object goes.
    public final class Listener: Sendable {
        /// Where it listens.
        public let port: UInt16
        private let descriptor: Int32

        /// Listens on a free port.
        public init() throws {
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let descriptor = descriptor
            let code = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                    bind(descriptor, generic, length) | listen(descriptor, 16)
                        | getsockname(descriptor, generic, &length)
                }
            }
            port = UInt16(bigEndian: address.sin_port)
            if code != 0 { throw ListenFailure(errno: errno) }
        }

        deinit {
            close(descriptor)
        }
    }

    struct ListenFailure: Error {
        var errno: Int32
    }
}
