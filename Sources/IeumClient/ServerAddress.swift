/// Where a server listens: `HOST:PORT`, an IPv6 address in brackets, the port 4386 when it is left out.
package struct ServerAddress: Hashable, Sendable {
    /// A name, an IPv4 address or an IPv6 address (without brackets).
    package var host: String
    /// 1 to 65535.
    package var port: UInt16

    /// The port of a server that names none.
    package static let standardPort: UInt16 = 4386

    /// Makes an address.
    package init(host: String, port: UInt16 = Self.standardPort) {
        self.host = host
        self.port = port
    }

    /// Reads `HOST:PORT`, `HOST`, `[IPV6]:PORT`, `[IPV6]` or a bare IPv6 address; nil for anything else.
    package init?(_ text: String) {
        let host: Substring
        var rest: Substring
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            guard host.contains(":") else { return nil }
            rest = text[text.index(after: end)...]
        } else if text.count(where: { $0 == ":" }) > 1 {
            (host, rest) = (text[...], "")
        } else {
            host = text.prefix { $0 != ":" }
            rest = text[host.endIndex...]
        }
        guard (1...253).contains(host.utf8.count), host.utf8.allSatisfy(\.isHostByte) else { return nil }
        self.host = String(host)
        guard !rest.isEmpty else {
            port = Self.standardPort
            return
        }
        guard rest.removeFirst() == ":", rest.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = UInt16(rest), port > 0
        else { return nil }
        self.port = port
    }
}

extension ServerAddress: CustomStringConvertible {
    /// `HOST:PORT`, as ``init(_:)`` reads it.
    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

extension UInt8 {
    /// Letters, digits, `.`, `-`, `_`, and what stands in IPv6 addresses (`:`, `%` before a zone).
    fileprivate var isHostByte: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2E, 0x2D, 0x5F, 0x3A, 0x25: true
        default: false
        }
    }
}
