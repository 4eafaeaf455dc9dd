import CLibEvent  // whose module holds the constants of <sys/socket.h> when it is loaded too
import Glibc

extension SocketAddress.Host {
    var isIPv6: Bool { self.systemFamily == AF_INET6 }
}

extension SocketAddress {
    /// Turns a host into its addresses, in the order in which they should be tried. Names block on the resolver.
    static func resolve(host: String, port: UInt16, isPassive: Bool = false) throws(EventLoopError) -> [SocketAddress] {
        if let numeric = SocketAddress(numericHost: host, port: port) { return [numeric] }
        guard !host.utf8.contains(0) else { throw EventLoopError(nameResolution: EAI_NONAME) }
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICSERV | (isPassive ? AI_PASSIVE : 0)
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &list)
        guard status == 0 else {
            throw status == EAI_SYSTEM ? EventLoopError(call: "getaddrinfo") : EventLoopError(nameResolution: status)
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next {
            if let raw = entry.pointee.ai_addr,
                let address = SocketAddress(raw, length: entry.pointee.ai_addrlen), !addresses.contains(address)
            {
                addresses.append(address)
            }
            next = entry.pointee.ai_next
        }
        guard !addresses.isEmpty else { throw EventLoopError(nameResolution: EAI_NONAME) }
        return addresses
    }

    /// The address that a socket is bound to.
    static func local(of descriptor: Int32) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                getsockname(descriptor, address, &length) == 0 ? SocketAddress(address, length: length) : nil
            }
        }
    }

    /// A new non-blocking, close-on-exec TCP socket of this address's family.
    func openStreamSocket() throws(EventLoopError) -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(host.systemFamily, kind, 0)
        guard descriptor >= 0 else { throw EventLoopError(call: "socket") }
        return descriptor
    }
}

func setOption(_ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Int32) throws(EventLoopError) {
    var value = value
    guard setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size)) == 0 else {
        throw EventLoopError(call: "setsockopt")
    }
}

/// No delay, and a dead peer is noticed: when idle, by six probes ten seconds apart after the idle time; when it owes us
/// acknowledgements, after the same time in all (and not after the system's quarter of an hour).
func setStreamOptions(_ descriptor: Int32, keepaliveIdle: Duration) throws(EventLoopError) {
    let tcp = Int32(IPPROTO_TCP)
    let idleSeconds = Int32(min(max(keepaliveIdle.components.seconds, 1), 32_767))
    try setOption(descriptor, tcp, TCP_NODELAY, 1)
    try setOption(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1)
    try setOption(descriptor, tcp, TCP_KEEPIDLE, idleSeconds)
    try setOption(descriptor, tcp, TCP_KEEPINTVL, 10)
    try setOption(descriptor, tcp, TCP_KEEPCNT, 6)
    try setOption(descriptor, tcp, TCP_USER_TIMEOUT, (idleSeconds + 60) * 1_000)
}
