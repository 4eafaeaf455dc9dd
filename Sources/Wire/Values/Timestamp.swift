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
            let month = text.digits(at: 5, count: 2), (1...12).contains(month),
            let day = text.digits(at: 8, count: 2), day >= 1, day <= Self.days(inMonth: month, of: year),
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
        let seconds = ((Self.daysSince1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
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
        let (year, month, day) = Self.civil(daysSince1970: days)
        let (seconds, fraction) = time.quotientAndRemainder(dividingBy: 1_000_000)
        let (minutes, second) = seconds.quotientAndRemainder(dividingBy: 60)
        let (hour, minute) = minutes.quotientAndRemainder(dividingBy: 60)
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 27) { text in
            text.write(year, at: 0, 4)
            text[4] = UInt8(ascii: "-")
            text.write(month, at: 5, 2)
            text[7] = UInt8(ascii: "-")
            text.write(day, at: 8, 2)
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

    // The two functions below are Howard Hinnant's "chrono-compatible low-level date algorithms", for years from 1970:
    // a year begins on the first of March, so that the leap day is its last.

    private static func daysSince1970(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    private static func civil(daysSince1970 days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }

    private static func days(inMonth month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
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
