import Foundation

/// A UUID that names one kind of thing. Printed in lower case, read in either case.
public protocol UUIDIdentifier: Hashable, Comparable, Sendable, LosslessStringConvertible {
    /// The UUID itself.
    var uuid: UUID { get }
    /// Wraps a UUID.
    init(_ uuid: UUID)
}

/// A player: one person, however many devices.
public struct PlayerID: UUIDIdentifier {
    /// The UUID itself.
    public let uuid: UUID
    /// Wraps a UUID.
    public init(_ uuid: UUID) { self.uuid = uuid }
}

/// One of a player's devices.
public struct DeviceID: UUIDIdentifier {
    /// The UUID itself.
    public let uuid: UUID
    /// Wraps a UUID.
    public init(_ uuid: UUID) { self.uuid = uuid }
}

extension UUIDIdentifier {
    /// Parses `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
    public init?(_ text: String) {
        var text = text
        guard let value = text.withUTF8({ Self(utf8: $0.span) }) else { return nil }
        self = value
    }

    /// Parses the text form from its bytes.
    public init?(utf8 text: Span<UInt8>) {
        guard let uuid = UUID(utf8: text) else { return nil }
        self.init(uuid)
    }

    /// Appends the text form, 36 bytes, in lower case.
    public func print(into bytes: inout [UInt8]) {
        uuid.print(into: &bytes)
    }

    /// The text form, in lower case.
    public var description: String { uuid.lowercaseText }

    /// Feeds the sixteen bytes in two words, which is quicker than one by one.
    public func hash(into hasher: inout Hasher) {
        let (high, low) = uuid.words
        hasher.combine(high)
        hasher.combine(low)
    }

    /// Whether the sixteen bytes are equal.
    public static func == (left: Self, right: Self) -> Bool { left.uuid.words == right.uuid.words }

    /// Orders by the sixteen bytes, as PostgreSQL orders `uuid`.
    public static func < (left: Self, right: Self) -> Bool { left.uuid.words < right.uuid.words }
}

extension UUID {
    /// Parses the text form, either case.
    package init?(utf8 text: Span<UInt8>) {
        guard text.count == 36 else { return nil }
        var value: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        let isValid = withUnsafeMutableBytes(of: &value) { bytes in
            var index = 0
            for position in 0..<16 {
                if position == 4 || position == 6 || position == 8 || position == 10 {
                    guard text[index] == UInt8(ascii: "-") else { return false }
                    index += 1
                }
                guard let high = text[index].hexValue, let low = text[index + 1].hexValue else { return false }
                bytes[position] = high << 4 | low
                index += 2
            }
            return true
        }
        guard isValid else { return nil }
        self.init(uuid: value)
    }

    /// The sixteen bytes as two numbers, the first eight the more significant: as pairs they order like the bytes.
    @inline(__always)
    package var words: (high: UInt64, low: UInt64) {
        withUnsafeBytes(of: uuid) {
            (
                UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)),
                UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
    }

    /// Appends the text form, 36 bytes, in lower case.
    package func print(into bytes: inout [UInt8]) {
        withUnsafeBytes(of: uuid) { raw in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 36) { text in
                var index = 0
                for position in 0..<16 {
                    if position == 4 || position == 6 || position == 8 || position == 10 {
                        text[index] = UInt8(ascii: "-")
                        index += 1
                    }
                    text[index] = hexDigit(raw[position] >> 4)
                    text[index + 1] = hexDigit(raw[position] & 15)
                    index += 2
                }
                bytes.append(contentsOf: text)
            }
        }
    }

    /// The text form, in lower case.
    package var lowercaseText: String {
        var bytes: [UInt8] = []
        print(into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit in either case.
    @inline(__always)
    package var hexValue: UInt8? {
        if isDigit { return self - UInt8(ascii: "0") }
        let letter = self | 0x20
        return letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "f") ? letter - UInt8(ascii: "a") + 10 : nil
    }
}
