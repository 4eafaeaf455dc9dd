import COpenSSL

/// SHA-256 of a migration's text, blind to how its lines end.
///
/// CR LF and a lone CR count as LF, so a checkout with other line ends is the same file.
public struct Checksum: Hashable, Sendable, CustomStringConvertible {
    /// 64 lower-case hexadecimal digits.
    public let hex: String

    /// A checksum read back from the history.
    init(hex: String) {
        self.hex = hex
    }

    /// The checksum of a text, byte order mark already removed.
    public init(of bytes: some Collection<UInt8>) {
        var normalised: [UInt8] = []
        normalised.reserveCapacity(bytes.count)
        var afterReturn = false
        for byte in bytes {
            if byte == UInt8(ascii: "\r") {
                normalised.append(UInt8(ascii: "\n"))
            } else if byte != UInt8(ascii: "\n") || !afterReturn {
                normalised.append(byte)
            }
            afterReturn = byte == UInt8(ascii: "\r")
        }
        hex = Self.sha256(normalised)
    }

    /// The 64 hexadecimal digits.
    public var description: String { hex }

    static func sha256(_ bytes: [UInt8]) -> String {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        SHA256(bytes, bytes.count, &digest)
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
