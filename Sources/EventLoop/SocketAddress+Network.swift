extension SocketAddress {
    /// A range of addresses, e.g. `10.0.0.0/8` or `2001:db8::/32`; without a length, one address.
    public struct Network: Hashable, Sendable {
        private let host: Host
        private let bits: Int

        /// Reads a range; nil for anything else.
        public init?(_ text: String) {
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let first = parts.first, let address = SocketAddress(numericHost: String(first), port: 0) else {
                return nil
            }
            let most = address.host.isIPv6 ? 128 : 32
            host = address.host
            guard parts.count == 2 else {
                bits = most
                return
            }
            guard let bits = Int(parts[1]), (0...most).contains(bits) else { return nil }
            self.bits = bits
        }

        /// Whether an address lies in it.
        public func contains(_ host: Host) -> Bool {
            self.host.agrees(with: host, bits: bits)
        }
    }
}
