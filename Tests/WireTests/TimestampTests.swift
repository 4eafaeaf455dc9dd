import Foundation
import Testing

@testable import Wire

@Suite("Timestamps")
struct TimestampTests {
    @Test(
        "a time in the text form is read and printed with six digits",
        arguments: [
            ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00.000000Z"),
            ("1970-01-01T00:00:00.000001Z", 1, "1970-01-01T00:00:00.000001Z"),
            ("1970-01-01T00:00:00.1Z", 100_000, "1970-01-01T00:00:00.100000Z"),
            ("1970-01-01T00:00:00.012Z", 12_000, "1970-01-01T00:00:00.012000Z"),
            ("2000-02-29T23:59:59.999999Z", 951_868_799_999_999, "2000-02-29T23:59:59.999999Z"),
            ("2026-11-29T11:59:58.120000Z", 1_795_953_598_120_000, "2026-11-29T11:59:58.120000Z"),
            ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
        ] as [(String, Int64, String)])
    func readsAndPrints(text: String, microseconds: Int64, printed: String) throws {
        let time = try #require(Timestamp(text))
        #expect(time.microseconds == microseconds)
        #expect(time.description == printed)
        #expect(Timestamp(microseconds: microseconds) == time)
    }

    @Test(
        "what is no time in the text form is refused",
        arguments: [
            "", "Z", "1969-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "2026-00-01T00:00:00Z",
            "2026-13-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-32T00:00:00Z", "2026-04-31T00:00:00Z",
            "2025-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:60Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00.1234567Z", "2026-01-01T00:00:00",
            "2026-01-01 00:00:00Z", "2026-01-01t00:00:00Z", "2026-01-01T00:00:00z", "2026-01-01T00:00:00+00:00",
            "2026-1-01T00:00:00Z", "2026-01-01T00:00:00,5Z", "2026-01-01T00:00:00.5", " 2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00Z ", "2026-01-01T00:00:0\u{0661}Z", "+026-01-01T00:00:00Z", "2026-01-01T00:00:00.-1Z",
        ])
    func refuses(text: String) {
        #expect(Timestamp(text) == nil)
    }

    @Test("random times are printed as Foundation prints them, and read back")
    func agreesWithFoundation() throws {
        var random = SeededRandom.fresh()
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(secondsFromGMT: 0))
        for _ in 0..<5_000 {
            let time = random.timestamp()
            let (seconds, fraction) = time.microseconds.quotientAndRemainder(dividingBy: 1_000_000)
            let date = Date(timeIntervalSince1970: TimeInterval(seconds))
            let parts = calendar.dateComponents([.year, .month, .day, .hour, .minute, .second], from: date)
            func pad(_ value: Int?, _ width: Int) -> String {
                let digits = String(value ?? -1)
                return String(repeating: "0", count: width - digits.count) + digits
            }
            let expected =
                "\(pad(parts.year, 4))-\(pad(parts.month, 2))-\(pad(parts.day, 2))T"
                + "\(pad(parts.hour, 2)):\(pad(parts.minute, 2)):\(pad(parts.second, 2)).\(pad(Int(fraction), 6))Z"
            #expect(time.description == expected)
            #expect(Timestamp(expected) == time)
        }
    }

    @Test("every day of a whole cycle of 400 years is printed and read back, in order")
    func everyDay() {
        var before = -1 as Int64
        var last = ""
        for day in 0...146_097 as ClosedRange<Int64> {
            let time = Timestamp(clamping: day * 86_400_000_000)
            let text = time.description
            guard Timestamp(text) == time, text > last, time.microseconds > before else {
                Issue.record("day \(day): \(text)")
                return
            }
            (last, before) = (text, time.microseconds)
        }
    }

    @Test("arithmetic stays in the range")
    func staysInRange() {
        #expect(Timestamp.latest.advanced(byMicroseconds: 1) == .latest)
        #expect(Timestamp.latest.advanced(byMicroseconds: .max) == .latest)
        #expect(Timestamp.earliest.advanced(byMicroseconds: -1) == .earliest)
        #expect(Timestamp.earliest.advanced(byMicroseconds: .min) == .earliest)
        #expect(Timestamp.earliest.advanced(byMicroseconds: 5).microseconds == 5)
        #expect(Timestamp(microseconds: -1) == nil)
        #expect(Timestamp(microseconds: Timestamp.latest.microseconds + 1) == nil)
    }
}
