/// Where a server listens and how it is spoken to: `HOST:PORT`, an IPv6 address in brackets, the port 4386 when it is left
/// out; `tls://` or `plain://` before it.
///
/// Without such a word this machine itself is spoken to plainly, and every other one with TLS.
package struct ServerAddress: Hashable, Sendable {
    /// A name, an IPv4 address or an IPv6 address (without brackets).
    package var host: String
    /// 1 to 65535.
    package var port: UInt16

    /// Whether TLS is spoken.
    package var isSecure: Bool
    /// What makes its certificate a good one.
    package var trust: ServerTrust
    /// This device's certificate, for a server that wants one.
    package var certificate: ClientCertificate?

    /// The port of a server that names none.
    package static let standardPort: UInt16 = 4386

    /// Makes an address.
    /// - Parameter isSecure: nil: unless it is this machine.
    package init(
        host: String, port: UInt16 = Self.standardPort, isSecure: Bool? = nil, trust: ServerTrust = .system,
        certificate: ClientCertificate? = nil
    ) {
        self.host = host
        self.port = port
        self.isSecure = isSecure ?? !Self.isLoopback(host)
        self.trust = trust
        self.certificate = certificate
    }

    /// Whether the host is this machine itself, by an address or the name `localhost`.
    package var isLoopback: Bool { Self.isLoopback(host) }

    private static func isLoopback(_ host: String) -> Bool {
        if host == "::1" || host.lowercased() == "localhost" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    private static let words = [("tls://", true), ("plain://", false)]

    /// Whether a text says itself how the server is spoken to.
    package static func saysHow(_ text: String) -> Bool { words.contains { text.lowercased().hasPrefix($0.0) } }

    /// Reads `HOST:PORT`, `HOST`, `[IPV6]:PORT`, `[IPV6]` or a bare IPv6 address, with `tls://` or `plain://` before it or
    /// without; nil for anything else.
    package init?(_ text: String) {
        let word = Self.words.first { text.lowercased().hasPrefix($0.0) }
        self.init(place: String(text.dropFirst(word?.0.count ?? 0)), isSecure: word?.1)
    }

    private init?(place text: String, isSecure: Bool?) {
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
        guard !rest.isEmpty else {
            self.init(host: String(host), isSecure: isSecure)
            return
        }
        guard rest.removeFirst() == ":", rest.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = UInt16(rest), port > 0
        else { return nil }
        self.init(host: String(host), port: port, isSecure: isSecure)
    }
}

extension ServerAddress: CustomStringConvertible {
    /// `HOST:PORT`, as ``init(_:)`` reads it; with `tls://` or `plain://` where it is not what the host alone would mean.
    package var description: String {
        let place = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        return isSecure == isLoopback ? (isSecure ? "tls://" : "plain://") + place : place
    }
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
