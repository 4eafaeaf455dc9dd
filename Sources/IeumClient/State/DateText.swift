import Foundation
import Wire

/// Dates as states hold them: ISO 8601, UTC, six digits of fraction, e.g. `2025-09-30T19:02:11.480000Z`.
///
/// Years 0000 to 9999 (Foundation's `Date.distantPast` is of the year 0000), the Gregorian calendar throughout. A `Date` is
/// rounded to the nearest microsecond.
enum DateText {
    private static let referenceMicros: Int64 = 978_307_200_000_000
    private static let earliest: Int64 = -62_167_219_200_000_000
    private static let latest: Int64 = 253_402_300_799_999_999

    /// Microseconds since 1970; nil outside the range.
    static func microseconds(_ date: Date) -> Int64? {
        // Seconds and their fraction apart: multiplied as one they would lose a microsecond before 1900.
        let seconds = date.timeIntervalSinceReferenceDate.rounded(.down)
        guard seconds > -1e12, seconds < 1e12 else { return nil }
        let fraction = ((date.timeIntervalSinceReferenceDate - seconds) * 1_000_000).rounded()
        let micros = Int64(seconds) * 1_000_000 + Int64(fraction) + referenceMicros
        return (earliest...latest).contains(micros) ? micros : nil
    }

    /// The date of microseconds since 1970.
    static func date(_ micros: Int64) -> Date {
        let since2001 = micros.subtractingReportingOverflow(referenceMicros).partialValue
        return Date(timeIntervalSinceReferenceDate: Double(since2001) / 1_000_000)
    }

    /// Appends the text of a date.
    /// - Returns: whether the date is in the range; else nothing is appended.
    static func append(_ date: Date, to text: inout [UInt8]) -> Bool {
        guard let micros = microseconds(date) else { return false }
        let seconds = floorDivide(micros, 1_000_000)
        let days = floorDivide(seconds, 86_400)
        let time = seconds - days * 86_400
        let date = CivilDate(daysSince1970: days)
        text.append(date.year, digits: 4)
        text.append(UInt8(ascii: "-"))
        text.append(date.month, digits: 2)
        text.append(UInt8(ascii: "-"))
        text.append(date.day, digits: 2)
        text.append(UInt8(ascii: "T"))
        text.append(time / 3_600, digits: 2)
        text.append(UInt8(ascii: ":"))
        text.append(time / 60 % 60, digits: 2)
        text.append(UInt8(ascii: ":"))
        text.append(time % 60, digits: 2)
        text.append(UInt8(ascii: "."))
        text.append(micros - seconds * 1_000_000, digits: 6)
        text.append(UInt8(ascii: "Z"))
        return true
    }

    /// The text of a date; nil outside the range.
    static func text(_ date: Date) -> String? {
        var bytes: [UInt8] = []
        return append(date, to: &bytes) ? String(decoding: bytes, as: UTF8.self) : nil
    }

    /// Microseconds since 1970 of a text with any number of digits of fraction, or none, and `Z` or an offset such as
    /// `+09:00`; nil if it is none.
    static func microseconds(_ text: String) -> Int64? {
        var scanner = Digits(bytes: Array(text.utf8)[...])
        guard let year = scanner.number(4), scanner.skip("-"), let month = scanner.number(2), scanner.skip("-"),
            let day = scanner.number(2), scanner.skip("T") || scanner.skip("t") || scanner.skip(" "),
            let hour = scanner.number(2), scanner.skip(":"), let minute = scanner.number(2), scanner.skip(":"),
            let second = scanner.number(2), hour < 24, minute < 60, second < 60,
            let date = CivilDate(year: year, month: month, day: day)
        else { return nil }
        var fraction: Int64 = 0
        if scanner.skip(".") {
            guard let value = scanner.fraction() else { return nil }
            fraction = value
        }
        var offset: Int64 = 0
        if !scanner.skip("Z"), !scanner.skip("z") {
            let isWest = scanner.skip("-")
            guard isWest || scanner.skip("+"), let hours = scanner.number(2), scanner.skip(":"),
                let minutes = scanner.number(2), hours < 24, minutes < 60
            else { return nil }
            offset = (hours * 60 + minutes) * (isWest ? -60 : 60)
        }
        guard scanner.bytes.isEmpty else { return nil }
        let seconds = ((date.daysSince1970 * 24 + hour) * 60 + minute) * 60 + second - offset
        let micros = seconds * 1_000_000 + fraction
        return (earliest...latest).contains(micros) ? micros : nil
    }

    private struct Digits {
        var bytes: ArraySlice<UInt8>

        mutating func skip(_ mark: Unicode.Scalar) -> Bool {
            guard bytes.first == UInt8(ascii: mark) else { return false }
            bytes.removeFirst()
            return true
        }

        mutating func number(_ count: Int) -> Int64? {
            guard bytes.count >= count else { return nil }
            var value: Int64 = 0
            for byte in bytes.prefix(count) {
                guard byte.isDigit else { return nil }
                value = value * 10 + Int64(byte - UInt8(ascii: "0"))
            }
            bytes = bytes.dropFirst(count)
            return value
        }

        /// Rounded to microseconds.
        mutating func fraction() -> Int64? {
            let digits = bytes.prefix { $0.isDigit }
            guard !digits.isEmpty else { return nil }
            bytes = bytes[digits.endIndex...]
            var value: Int64 = 0
            for position in 0..<6 {
                value *= 10
                if position < digits.count { value += Int64(digits[digits.startIndex + position] - UInt8(ascii: "0")) }
            }
            if digits.count > 6, digits[digits.startIndex + 6] >= UInt8(ascii: "5") { value += 1 }
            return value
        }
    }

    private static func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
