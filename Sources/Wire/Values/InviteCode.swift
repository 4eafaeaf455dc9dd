/// A code by which an operator lets one new player in: sixteen characters, shown as `XXXX-XXXX-XXXX-XXXX`.
///
/// Crockford's base 32, as in ``PairingCode``. The first four characters find the code's row and name it in lists
/// (``locator``); the other twelve are the secret, 60 bits. Neither `description` nor a dump shows the secret: print it on
/// purpose with ``text``.
public struct InviteCode: Hashable, Sendable {
    /// The number of characters, hyphens left out.
    public static let characterCount = 16
    /// The number of random bytes that make a code.
    public static let byteCount = 10

    /// The 80 bits, first character highest.
    private let bits: UInt128

    /// Makes a code of ten random bytes; `nil` for another number of them.
    public init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        bits = bytes.reduce(0) { $0 << 8 | UInt128($1) }
    }

    /// Reads what a person typed.
    public init?(_ text: String) {
        var text = text
        guard let value = text.withUTF8({ InviteCode(utf8: $0.span) }) else { return nil }
        self = value
    }

    /// Reads what a person typed, from its bytes.
    public init?(utf8 text: Span<UInt8>) {
        guard let bits: UInt128 = CrockfordBase32.read(text, count: Self.characterCount) else { return nil }
        self.bits = bits
    }

    /// The first four characters: public, finds the row.
    public var locator: String { String(decoding: canonical[..<4], as: UTF8.self) }

    /// The sixteen characters without hyphens: what is hashed.
    public var canonical: [UInt8] {
        (0..<Self.characterCount).map { CrockfordBase32.character(for: bits >> UInt128(75 - 5 * $0)) }
    }

    /// The form to show, the secret included: for who is invited only.
    public var text: String {
        var bytes: [UInt8] = []
        print(into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends the form to show.
    public func print(into bytes: inout [UInt8]) {
        for (index, character) in canonical.enumerated() {
            if index > 0, index.isMultiple(of: 4) { bytes.append(UInt8(ascii: "-")) }
            bytes.append(character)
        }
    }
}

extension InviteCode: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The locator; never the secret.
    public var description: String { "\(locator)-****-****-****" }
    /// The locator; never the secret.
    public var debugDescription: String { description }
    /// The locator; never the secret.
    public var customMirror: Mirror { Mirror(self, children: ["locator": locator]) }
}
