/// What makes a server's certificate a good one.
///
/// Only a connection with TLS asks: one to a server off this machine, unless its address says `plain://`.
public enum ServerTrust: Hashable, Sendable {
    /// An authority that this system trusts has issued it, for the server's name or address.
    case system
    /// An authority in this PEM file has issued it, for the server's name or address: for a company's or a home's own.
    case authorities(file: String)
    /// It is the one with this fingerprint, as `ieumd cert self-signed` prints it. Nothing else is asked: neither its name nor
    /// its dates nor who issued it. A server that changes its certificate is another one then.
    case pinned(Fingerprint)

    /// The SHA-256 of a certificate.
    public struct Fingerprint: Hashable, Sendable {
        /// 32 bytes.
        public let bytes: [UInt8]

        /// Reads 64 hexadecimal digits; colons between them and capitals are allowed. Nil for anything else.
        public init?(_ text: String) {
            let digits = text.utf8.filter { $0 != UInt8(ascii: ":") }
            guard digits.count == 64 else { return nil }
            var bytes: [UInt8] = []
            for index in stride(from: 0, to: 64, by: 2) {
                guard let high = Self.value(of: digits[index]), let low = Self.value(of: digits[index + 1]) else {
                    return nil
                }
                bytes.append(high << 4 | low)
            }
            self.bytes = bytes
        }

        private static func value(of digit: UInt8) -> UInt8? {
            switch digit {
            case 0x30...0x39: digit - 0x30
            case 0x41...0x46: digit - 0x37
            case 0x61...0x66: digit - 0x57
            default: nil
            }
        }
    }
}

extension ServerTrust.Fingerprint: CustomStringConvertible {
    /// 64 hexadecimal digits in lower case.
    public var description: String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
}

/// A certificate of the device's own, for a server that takes no others.
public struct ClientCertificate: Hashable, Sendable {
    /// The PEM file of the certificate, with the chain behind it.
    public var file: String
    /// The PEM file of its key, which its owner alone may read.
    public var key: String

    /// Names the files.
    public init(file: String, key: String) {
        self.file = file
        self.key = key
    }
}
