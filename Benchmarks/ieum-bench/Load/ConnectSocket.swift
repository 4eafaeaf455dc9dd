import Glibc

/// Binds a socket to an address of this machine and connects it to a port; with a socket that does not block it may be
/// under way when this returns.
func connectSocket(_ descriptor: Int32, to port: UInt16, from source: UInt32) throws {
    var one: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, size)
    // Lets the kernel choose the port at connect, by all four parts of the address.
    setsockopt(descriptor, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, &one, size)
    guard withAddress(source, port: 0, { bind(descriptor, $0, $1) }) == 0 else { throw BenchError.system("bind") }
    guard withAddress(0x7F00_0001, port: port, { connect(descriptor, $0, $1) }) == 0 || errno == EINPROGRESS else {
        throw BenchError.system("connect to port \(port)")
    }
}

private func withAddress(_ host: UInt32, port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = host.bigEndian
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
}
