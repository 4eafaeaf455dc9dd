import Glibc

/// An IPv4 or IPv6 address with a port; a small value, fit to count peers by.
///
/// An IPv4 peer of an IPv6 socket (`::ffff:192.0.2.1`) is told as what it is, IPv4. Zones of link-local addresses are
/// not kept.
public struct SocketAddress: Hashable, Sendable {
    /// The address without its port, what limits by address count.
    public struct Host: Hashable, Sendable {
        fileprivate enum Family: UInt8 { case ipv4, ipv6 }

        // In network order, IPv4 in the first four bytes.
        fileprivate let high: UInt64
        fileprivate let low: UInt64
        // Last, so that the port needs no word of its own.
        fileprivate let family: Family

        fileprivate init(_ family: Family, high: UInt64, low: UInt64) {
            self.family = family
            self.high = high
            self.low = low
        }

        fileprivate init(ipv4: in_addr) {
            self.init(.ipv4, high: UInt64(ipv4.s_addr), low: 0)
        }

        fileprivate init(ipv6: in6_addr) {
            let (high, low) = withUnsafeBytes(of: ipv6) {
                ($0.load(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            }
            if high == 0, UInt32(truncatingIfNeeded: low).bigEndian == 0xffff {
                self.init(ipv4: in_addr(s_addr: UInt32(truncatingIfNeeded: low >> 32)))
            } else {
                self.init(.ipv6, high: high, low: low)
            }
        }
    }

    /// The address.
    public let host: Host
    /// The port, in the machine's order.
    public let port: UInt16

    /// Reads an address of digits, such as `192.0.2.1` or `2001:db8::1`; nil for anything else, names too.
    public init?(numericHost host: String, port: UInt16) {
        var ipv4 = in_addr()
        var ipv6 = in6_addr()
        // C would read up to a NUL and take the rest for granted.
        guard !host.utf8.contains(0) else { return nil }
        if inet_pton(AF_INET, host, &ipv4) == 1 {
            self.host = Host(ipv4: ipv4)
        } else if inet_pton(AF_INET6, host, &ipv6) == 1 {
            self.host = Host(ipv6: ipv6)
        } else {
            return nil
        }
        self.port = port
    }

    /// Reads an address of four or sixteen bytes, in network order; nil for any other number of them.
    init?(networkOrder bytes: [UInt8], port: UInt16) {
        switch bytes.count {
        case 4:
            host = Host(ipv4: bytes.withUnsafeBytes { $0.loadUnaligned(as: in_addr.self) })
        case 16:
            host = Host(ipv6: bytes.withUnsafeBytes { $0.loadUnaligned(as: in6_addr.self) })
        default:
            return nil
        }
        self.port = port
    }

    /// Copies an address that the system gave; nil when it is of another family.
    init?(_ address: UnsafePointer<sockaddr>, length: socklen_t) {
        switch Int32(address.pointee.sa_family) {
        case AF_INET where length >= socklen_t(MemoryLayout<sockaddr_in>.size):
            let ipv4 = UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self)
            host = Host(ipv4: ipv4.sin_addr)
            port = UInt16(bigEndian: ipv4.sin_port)
        case AF_INET6 where length >= socklen_t(MemoryLayout<sockaddr_in6>.size):
            let ipv6 = UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in6.self)
            host = Host(ipv6: ipv6.sin6_addr)
            port = UInt16(bigEndian: ipv6.sin6_port)
        default:
            return nil
        }
    }

    /// Lends the address in the system's form.
    func withSystemAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        var storage = sockaddr_storage()
        return withUnsafeMutableBytes(of: &storage) { bytes in
            let length: Int
            switch host.family {
            case .ipv4:
                let address = in_addr(s_addr: UInt32(truncatingIfNeeded: host.high))
                let ipv4 = sockaddr_in(
                    sin_family: sa_family_t(AF_INET), sin_port: port.bigEndian, sin_addr: address,
                    sin_zero: (0, 0, 0, 0, 0, 0, 0, 0))
                bytes.storeBytes(of: ipv4, as: sockaddr_in.self)
                length = MemoryLayout<sockaddr_in>.size
            case .ipv6:
                var ipv6 = sockaddr_in6()
                ipv6.sin6_family = sa_family_t(AF_INET6)
                ipv6.sin6_port = port.bigEndian
                withUnsafeMutableBytes(of: &ipv6.sin6_addr) {
                    $0.storeBytes(of: host.high, as: UInt64.self)
                    $0.storeBytes(of: host.low, toByteOffset: 8, as: UInt64.self)
                }
                bytes.storeBytes(of: ipv6, as: sockaddr_in6.self)
                length = MemoryLayout<sockaddr_in6>.size
            }
            // The bytes of a variable, which are never none, have an address.
            guard let start = bytes.baseAddress else { preconditionFailure("an empty sockaddr_storage") }
            return body(UnsafePointer(start.assumingMemoryBound(to: sockaddr.self)), socklen_t(length))
        }
    }
}

extension SocketAddress.Host {
    var systemFamily: Int32 { family == .ipv4 ? AF_INET : AF_INET6 }

    /// The address by which a household counts: of IPv6 its /64, of IPv4 itself.
    public var network: SocketAddress.Host {
        family == .ipv4 ? self : SocketAddress.Host(.ipv6, high: high, low: 0)
    }

    /// Whether both agree in their first bits.
    func agrees(with other: SocketAddress.Host, bits: Int) -> Bool {
        guard family == other.family else { return false }
        // A shift by 64 and more leaves nothing: no bits of a half are asked for then.
        let first = (high ^ other.high).bigEndian >> UInt64(64 - min(max(bits, 0), 64))
        let second = (low ^ other.low).bigEndian >> UInt64(64 - min(max(bits - 64, 0), 64))
        return first == 0 && second == 0
    }

    /// Whether it is this machine's own, 127.0.0.0/8 or ::1.
    public var isLoopback: Bool {
        switch family {
        case .ipv4: UInt8(truncatingIfNeeded: high) == 127
        case .ipv6: high == 0 && low.bigEndian == 1
        }
    }
}

extension SocketAddress.Host: CustomStringConvertible {
    /// `192.0.2.1` or `2001:db8::1`
    public var description: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            buffer.initialize(repeating: 0)
            var bytes = (high, low)
            let isPrinted = withUnsafeBytes(of: &bytes) {
                inet_ntop(systemFamily, $0.baseAddress, buffer.baseAddress, socklen_t(buffer.count))
            }
            guard isPrinted != nil, let start = buffer.baseAddress else { return "?" }
            return String(cString: start)
        }
    }
}

extension SocketAddress: CustomStringConvertible {
    /// `192.0.2.1:4386` or `[2001:db8::1]:4386`
    public var description: String {
        host.family == .ipv4 ? "\(host):\(port)" : "[\(host)]:\(port)"
    }
}
