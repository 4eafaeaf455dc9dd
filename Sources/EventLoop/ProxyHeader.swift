/// The header by which a load balancer says whose connection it passes on: PROXY protocol, version 2 (binary).
///
/// Source: HAProxy's `proxy-protocol.txt`, section 2.2. Checksums and other additional values (TLV) are passed over.
public struct ProxyHeader: Hashable, Sendable {
    /// How many bytes of the stream it takes.
    public var length: Int
    /// Who connected to the balancer; nil when the connection is the balancer's own (`LOCAL`, a health check) or of a kind
    /// without an IP address: the socket's peer stands then.
    public var source: SocketAddress?

    /// A header of so many bytes.
    public init(length: Int, source: SocketAddress?) {
        self.length = length
        self.source = source
    }

    /// What the beginning of a stream is.
    public enum Reading: Hashable, Sendable {
        /// A header may come of it; read on, up to so many bytes in all.
        case incomplete(needed: Int)
        /// The header.
        case header(ProxyHeader)
        /// No header of this version.
        case invalid(Fault)
    }

    /// Why a stream does not begin with a header.
    public enum Fault: Hashable, Sendable {
        /// It begins with something else: a client that came around the balancer, or version 1.
        case signature
        /// The version or the command is unknown.
        case command
        /// The addresses do not fit into what is said to follow.
        case length
    }

    /// The longest header that is taken. The addresses are at most 216 bytes; the rest is additional values.
    public static let maxLength = 2_048

    private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    private static let fixedLength = 16

    /// Reads the beginning of a stream.
    public static func read(_ bytes: some RandomAccessCollection<UInt8>) -> Reading {
        let bytes = Array(bytes.prefix(maxLength))
        guard bytes.starts(with: signature.prefix(bytes.count)) else { return .invalid(.signature) }
        guard bytes.count >= fixedLength else { return .incomplete(needed: fixedLength) }
        guard bytes[12] >> 4 == 2, bytes[12] & 15 <= 1 else { return .invalid(.command) }
        let length = fixedLength + Int(bytes[14]) << 8 + Int(bytes[15])
        guard length <= maxLength else { return .invalid(.length) }
        guard bytes.count >= length else { return .incomplete(needed: length) }
        guard bytes[12] & 15 == 1 else { return .header(ProxyHeader(length: length, source: nil)) }
        let body = bytes[fixedLength..<length]
        let size: Int
        switch bytes[13] >> 4 {
        case 1: size = 4
        case 2: size = 16
        default: return .header(ProxyHeader(length: length, source: nil))
        }
        guard body.count >= 2 * size + 4 else { return .invalid(.length) }
        let portAt = body.startIndex + 2 * size
        let port = UInt16(body[portAt]) << 8 | UInt16(body[portAt + 1])
        let source = SocketAddress(networkOrder: Array(body.prefix(size)), port: port)
        return .header(ProxyHeader(length: length, source: source))
    }
}
