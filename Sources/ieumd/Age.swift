/// A length of time as an operator writes it: a whole number with `h`, `d` or `w`.
enum Age {
    /// `90d` in microseconds: hours, days of 24 hours, weeks of 7 days; up to 100 years. Nil for anything else.
    static func microseconds(_ text: String) -> Int64? {
        let hours: Int64
        switch text.last {
        case "h": hours = 1
        case "d": hours = 24
        case "w": hours = 168
        default: return nil
        }
        let digits = text.dropLast()
        guard digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = Int64(digits), (1...876_600 / hours).contains(number)
        else { return nil }
        return number * hours * 3_600_000_000
    }
}
