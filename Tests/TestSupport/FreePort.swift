import Glibc
import Synchronization

/// TCP ports of the loopback for tests.
public enum FreePort {
    /// A port on which nobody listens, each time another.
    ///
    /// It lies below those that the kernel gives to whoever listens on port 0, and to connections: nobody takes it before it
    /// is used, nor while who listens there is away.
    public static func find() throws -> UInt16 {
        try next.withLock { next in
            for _ in ports {
                next = next == ports.upperBound ? ports.lowerBound : next + 1
                if (try? Listener(on: next)) != nil { return next }
            }
            throw ListenFailure(errno: EADDRINUSE)
        }
    }

    /// Linux gives ports from 32768 on, unless it is told otherwise. Source: ip(7), ip_local_port_range.
    private static let ports: ClosedRange<UInt16> = 20_000...32_700
    /// Begun anywhere, since tests of several processes may run side by side.
    private static let next = Mutex(UInt16.random(in: ports))

    /// A socket that accepts connections and never says a word; closed when the object goes.
    public final class Listener: Sendable {
        /// Where it listens.
        public let port: UInt16
        private let descriptor: Int32

        /// Listens on a port; 0 takes a free one.
        public init(on wanted: UInt16 = 0) throws {
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = wanted.bigEndian
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
