/// Points in time as text.
enum Timestamp {
    /// `2026-11-29T12:00:00.000000Z` for microseconds since 1970.
    static func text(microseconds: Int64) -> String {
        let perSecond: Int64 = 1_000_000
        let perDay: Int64 = 86_400 * perSecond
        var (day, rest) = microseconds.quotientAndRemainder(dividingBy: perDay)
        if rest < 0 { (day, rest) = (day - 1, rest + perDay) }
        let (year, month, dayOfMonth) = date(day)
        let seconds = rest / perSecond
        return "\(pad(year, 4))-\(pad(month, 2))-\(pad(dayOfMonth, 2))"
            + "T\(pad(seconds / 3600, 2)):\(pad(seconds / 60 % 60, 2)):\(pad(seconds % 60, 2)).\(pad(rest % perSecond, 6))Z"
    }

    /// The Gregorian date of a day counted from 1970-01-01. Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    private static func date(_ day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = day + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    }

    private static func pad(_ value: Int64, _ width: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(width - text.count, 0)) + text
    }
}
