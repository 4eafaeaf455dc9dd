import Foundation

/// A word that can be asked, with its letters.
public struct WordDict: Hashable, Sendable {
    /// The word in syllables, NFC.
    public var word: String
    /// Its five basic letters.
    public var letters: [Jamo]
}

/// The answers of 한들: everyday nouns of exactly five basic letters.
public enum AnswerWords {
    /// All of them, in the order in which they are asked.
    public static let all: [WordDict] = list.split(whereSeparator: \.isWhitespace).compactMap { word in
        let word = String(word)
        return (try? Hangul.letters(of: word)).map { WordDict(word: word, letters: $0) }
    }

    /// Whether a word is one of the answers, however it is normalised.
    public static func contains(_ word: String) -> Bool { words.contains(word) }

    /// The number of the day that a moment is in: 1 for the first of January 2025, in Korea's time (UTC+9, no summer time).
    ///
    /// A day begins for everybody at the same moment, wherever they are, so that all players guess the same word.
    public static func number(of moment: Date) -> Int {
        let seconds = moment.timeIntervalSince1970 + koreaSecondsFromUTC
        let days = (seconds / secondsInDay).rounded(.down)
        // A date can be anything that a file said: what no Int64 holds is no day, and gets the first one's number.
        guard let days = Int(exactly: days) else { return 1 }
        return days.subtractingReportingOverflow(daysBeforeFirst).partialValue
    }

    /// The word of a day. The list is asked from its beginning to its end, and then again.
    /// - Parameter number: A day's number as ``number(of:)`` gives it; any number has a word.
    public static func answer(forDay number: Int) -> String {
        let place = number % all.count - 1
        return all[place < 0 ? place + all.count : place].word
    }

    /// The word of the day that a moment is in, in Korea's time.
    public static func answer(forDay moment: Date) -> String { answer(forDay: Self.number(of: moment)) }

    /// The date of a day in Korea's time: `2025-01-01` for 1. Of a number beyond the years 1 to 9999, the number itself.
    public static func date(ofDay number: Int) -> String {
        let (days, isBeyond) = number.addingReportingOverflow(daysBeforeFirst)
        let seconds = Double(days) * secondsInDay
        guard !isBeyond, (firstSecond...lastSecond).contains(seconds) else { return String(number) }
        return Date(timeIntervalSince1970: seconds).formatted(.iso8601.year().month().day())
    }

    /// A word for practice.
    public static func practice(using random: inout some RandomNumberGenerator) -> String {
        all[Int.random(in: all.indices, using: &random)].word
    }

    private static let words = Set(all.map(\.word))
    private static let koreaSecondsFromUTC = 9.0 * 3600
    private static let secondsInDay = 86400.0
    /// The first of January of the year 1, and the last of December 9999.
    private static let firstSecond = -62_135_596_800.0
    private static let lastSecond = 253_402_214_400.0
    /// Days from the first of January 1970 to the last of December 2024.
    private static let daysBeforeFirst = 20088
}
