import Foundation
import Handle
import TestSupport
import Testing

@Suite("Answers")
struct AnswerWordsTests {
    @Test("every answer is whole syllables in NFC of exactly five basic letters, and there are 500 at least, each once")
    func list() throws {
        let words = AnswerWords.all
        #expect(words.count >= 500)
        #expect(Set(words.map(\.word)).count == words.count)
        for word in words {
            #expect(Hangul.isSyllables(word.word), "\(word.word)")
            #expect(word.letters.count == 5, "\(word.word)")
            #expect(try Hangul.letters(of: word.word) == word.letters)
            let composed = word.word.precomposedStringWithCanonicalMapping
            #expect(Array(word.word.utf8) == Array(composed.utf8), "\(word.word)")
            #expect(AnswerWords.contains(word.word.decomposedStringWithCanonicalMapping))
        }
        #expect(!AnswerWords.contains("안녕"))
    }

    @Test(
        "days begin at midnight in Korea",
        arguments: [
            ("2024-12-31T15:00:00Z", 1), ("2024-12-31T14:59:59Z", 0), ("2025-09-29T15:00:00Z", 273),
            ("2025-09-30T14:59:59Z", 273), ("2025-09-30T15:00:00Z", 274), ("1969-12-31T23:00:00Z", -20088),
        ])
    func days(moment: String, number: Int) throws {
        let date = try Date(moment, strategy: .iso8601)
        #expect(AnswerWords.number(of: date) == number)
        #expect(AnswerWords.answer(forDay: date) == AnswerWords.answer(forDay: number))
    }

    @Test("every day has a word, the list in its order; the 30th of September 2025 had 사람")
    func words() {
        let count = AnswerWords.all.count
        for day in 1...count { #expect(AnswerWords.answer(forDay: day) == AnswerWords.all[day - 1].word) }
        #expect(AnswerWords.answer(forDay: count + 1) == AnswerWords.all[0].word)
        #expect(AnswerWords.answer(forDay: 0) == AnswerWords.all[count - 1].word)
        #expect(AnswerWords.answer(forDay: 273) == "사람")
        for day in [Int.min, Int.min + 1, -1, Int.max] {
            #expect(AnswerWords.contains(AnswerWords.answer(forDay: day)))
        }
    }

    @Test("a date that is no date has a number", arguments: [Double.nan, .infinity, -.infinity, 1e300, -1e300])
    func oddDates(seconds: Double) {
        #expect(AnswerWords.number(of: Date(timeIntervalSince1970: seconds)) == 1)
    }

    @Test("words for practice come from the random source alone")
    func practice() {
        var one = SeededRandom(seed: 7)
        var same = SeededRandom(seed: 7)
        var words: Set<String> = []
        for _ in 0..<200 {
            let word = AnswerWords.practice(using: &one)
            #expect(word == AnswerWords.practice(using: &same))
            #expect(AnswerWords.contains(word))
            words.insert(word)
        }
        #expect(words.count > 100)
    }
}
