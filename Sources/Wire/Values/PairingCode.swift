/// A code that a player reads off one device and types on another: eight characters, shown as `XXXX-XXXX`.
///
/// Crockford's base 32: no `I`, `L`, `O`, `U`; on input either case, `O` is `0`, `I` and `L` are `1`, and hyphens may be
/// left out. The first half finds the code's row (``locator``), the second is the secret that a try must meet.
public struct PairingCode: Hashable, Sendable {
    /// The 40 bits, first character highest.
    private let bits: UInt64

    /// Makes a code of five random bytes; `nil` for another number of them.
    public init?(bytes: [UInt8]) {
        guard bytes.count == 5 else { return nil }
        bits = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads what a person typed.
    public init?(_ text: String) {
        var text = text
        guard let value = text.withUTF8({ PairingCode(utf8: $0.span) }) else { return nil }
        self = value
    }

    /// Reads what a person typed, from its bytes.
    public init?(utf8 text: Span<UInt8>) {
        guard let bits: UInt64 = CrockfordBase32.read(text, count: 8) else { return nil }
        self.bits = bits
    }

    /// The first four characters: public, finds the row.
    public var locator: String { String(decoding: canonical[..<4], as: UTF8.self) }

    /// The eight characters without a hyphen: what is hashed.
    public var canonical: [UInt8] {
        (0..<8).map { CrockfordBase32.character(for: bits >> UInt64(35 - 5 * $0)) }
    }

    /// The form to show: `XXXX-XXXX`.
    public var text: String {
        var bytes: [UInt8] = []
        print(into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends the form to show.
    public func print(into bytes: inout [UInt8]) {
        let characters = canonical
        bytes.append(contentsOf: characters[..<4])
        bytes.append(UInt8(ascii: "-"))
        bytes.append(contentsOf: characters[4...])
    }
}

extension PairingCode: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The locator; never the secret half.
    public var description: String { "\(locator)-****" }
    /// The locator; never the secret half.
    public var debugDescription: String { description }
    /// The locator; never the secret half.
    public var customMirror: Mirror { Mirror(self, children: ["locator": locator]) }
}
