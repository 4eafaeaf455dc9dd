/// A moment in UTC with a resolution of one microsecond.
///
/// Text form: `YYYY-MM-DDTHH:MM:SS[.f]Z` with one to six digits of fraction; printed always with six. Range:
/// 1970-01-01T00:00:00.000000Z to 9999-12-31T23:59:59.999999Z. There are no leap seconds, as in PostgreSQL.
/// Source: Documentation/protocol.md, "Times".
public struct Timestamp: Hashable, Comparable, Sendable {
    /// Microseconds since 1970-01-01T00:00:00Z.
    public let microseconds: Int64

    /// The earliest timestamp that has a text form: 1970-01-01T00:00:00.000000Z.
    public static let earliest = Timestamp(unchecked: 0)
    /// The latest timestamp that has a text form: 9999-12-31T23:59:59.999999Z.
    public static let latest = Timestamp(unchecked: 253_402_300_799_999_999)

    /// Creates a timestamp; `nil` outside the range.
    public init?(microseconds: Int64) {
        guard (Self.earliest.microseconds...Self.latest.microseconds).contains(microseconds) else { return nil }
        self.microseconds = microseconds
    }

    /// Creates a timestamp; a value outside the range becomes the nearest one inside.
    public init(clamping microseconds: Int64) {
        self.microseconds = min(max(microseconds, Self.earliest.microseconds), Self.latest.microseconds)
    }

    private init(unchecked microseconds: Int64) {
        self.microseconds = microseconds
    }

    /// Parses the text form.
    public init?(_ text: String) {
        var text = text
        guard let value = text.withUTF8({ Timestamp(utf8: $0.span) }) else { return nil }
        self = value
    }

    /// Parses the text form from its bytes.
    public init?(utf8 text: Span<UInt8>) {
        // 0123456789012345678901234567
        // YYYY-MM-DDTHH:MM:SS.ffffffZ
        let count = text.count
        guard count == 20 || (22...27).contains(count),
            text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"), text[10] == UInt8(ascii: "T"),
            text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"), text[count - 1] == UInt8(ascii: "Z"),
            let year = text.digits(at: 0, count: 4), year >= 1970,
            let month = text.digits(at: 5, count: 2), let day = text.digits(at: 8, count: 2),
            let date = CivilDate(year: year, month: month, day: day),
            let hour = text.digits(at: 11, count: 2), hour < 24,
            let minute = text.digits(at: 14, count: 2), minute < 60,
            let second = text.digits(at: 17, count: 2), second < 60
        else { return nil }
        var fraction: Int64 = 0
        if count > 20 {
            let digits = count - 21
            guard text[19] == UInt8(ascii: "."), let value = text.digits(at: 20, count: digits) else { return nil }
            fraction = value
            for _ in digits..<6 { fraction *= 10 }
        }
        let seconds = ((date.daysSince1970 * 24 + hour) * 60 + minute) * 60 + second
        self.microseconds = seconds * 1_000_000 + fraction
    }

    /// This moment and `microseconds` more, held inside the range.
    public func advanced(byMicroseconds delta: Int64) -> Timestamp {
        let (sum, overflow) = microseconds.addingReportingOverflow(delta)
        return overflow ? (delta < 0 ? .earliest : .latest) : Timestamp(clamping: sum)
    }

    /// Appends the text form, 27 bytes.
    public func print(into bytes: inout [UInt8]) {
        let (days, time) = microseconds.quotientAndRemainder(dividingBy: 86_400_000_000)
        let date = CivilDate(daysSince1970: days)
        let (seconds, fraction) = time.quotientAndRemainder(dividingBy: 1_000_000)
        let (minutes, second) = seconds.quotientAndRemainder(dividingBy: 60)
        let (hour, minute) = minutes.quotientAndRemainder(dividingBy: 60)
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 27) { text in
            text.write(date.year, at: 0, 4)
            text[4] = UInt8(ascii: "-")
            text.write(date.month, at: 5, 2)
            text[7] = UInt8(ascii: "-")
            text.write(date.day, at: 8, 2)
            text[10] = UInt8(ascii: "T")
            text.write(hour, at: 11, 2)
            text[13] = UInt8(ascii: ":")
            text.write(minute, at: 14, 2)
            text[16] = UInt8(ascii: ":")
            text.write(second, at: 17, 2)
            text[19] = UInt8(ascii: ".")
            text.write(fraction, at: 20, 6)
            text[26] = UInt8(ascii: "Z")
            bytes.append(contentsOf: text)
        }
    }

    /// Orders by time.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.microseconds < right.microseconds
    }
}

extension Timestamp: CustomStringConvertible {
    /// The text form.
    public var description: String {
        var bytes: [UInt8] = []
        print(into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension Span<UInt8> {
    /// The value of `count` (at most 18) decimal digits from `start`; `nil` if one of them is no digit.
    fileprivate func digits(at start: Int, count: Int) -> Int64? {
        var value: Int64 = 0
        for index in start..<(start + count) {
            let digit = self[index] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            value = value * 10 + Int64(digit)
        }
        return value
    }
}
