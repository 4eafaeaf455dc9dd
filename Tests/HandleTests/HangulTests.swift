import Foundation
import Handle
import TestSupport
import Testing

@Suite("Hangul in basic letters")
struct HangulTests {
    @Test(
        "a text comes apart into the 24 basic letters, compounds into what they are made of",
        arguments: [
            ("사람", "ㅅㅏㄹㅏㅁ"), ("안녕", "ㅇㅏㄴㄴㅕㅇ"), ("나무", "ㄴㅏㅁㅜ"), ("꽃", "ㄱㄱㅗㅊ"), ("노래", "ㄴㅗㄹㅏㅣ"),
            ("시계", "ㅅㅣㄱㅕㅣ"), ("과자", "ㄱㅗㅏㅈㅏ"), ("왜", "ㅇㅗㅏㅣ"), ("외", "ㅇㅗㅣ"), ("원", "ㅇㅜㅓㄴ"), ("웨", "ㅇㅜㅓㅣ"),
            ("위", "ㅇㅜㅣ"), ("의", "ㅇㅡㅣ"), ("얘", "ㅇㅑㅣ"), ("에", "ㅇㅓㅣ"), ("몫", "ㅁㅗㄱㅅ"), ("앉", "ㅇㅏㄴㅈ"), ("않", "ㅇㅏㄴㅎ"),
            ("닭", "ㄷㅏㄹㄱ"), ("삶", "ㅅㅏㄹㅁ"), ("넓", "ㄴㅓㄹㅂ"), ("곬", "ㄱㅗㄹㅅ"), ("핥", "ㅎㅏㄹㅌ"), ("읊", "ㅇㅡㄹㅍ"), ("잃", "ㅇㅣㄹㅎ"),
            ("값", "ㄱㅏㅂㅅ"), ("있", "ㅇㅣㅅㅅ"), ("뜀", "ㄷㄷㅜㅣㅁ"), ("뺨", "ㅂㅂㅑㅁ"), ("씨", "ㅅㅅㅣ"), ("짝", "ㅈㅈㅏㄱ"),
            ("ㄲㄳㄵㅃㄸㅉㅆㅖㅘㅢㄿㅄ", "ㄱㄱㄱㅅㄴㅈㅂㅂㄷㄷㅈㅈㅅㅅㅕㅣㅗㅏㅡㅣㄹㅍㅂㅅ"), ("힣", "ㅎㅣㅎ"), ("가", "ㄱㅏ"), ("", ""),
        ])
    func letters(text: String, expected: String) throws {
        #expect(try joined(Hangul.letters(of: text)) == expected)
        #expect(try joined(Hangul.letters(of: text.decomposedStringWithCanonicalMapping)) == expected)
    }

    @Test("every syllable comes apart as its decomposed form does, and is among the readings of its letters")
    func allSyllables() throws {
        for value in UInt32(0xAC00)...0xD7A3 {
            let syllable = String(Character(try #require(Unicode.Scalar(value))))
            let letters = try Hangul.letters(of: syllable)
            try #require(try Hangul.letters(of: syllable.decomposedStringWithCanonicalMapping) == letters)
            try #require(Hangul.readings(of: letters).contains(syllable))
        }
    }

    @Test("every compatibility letter comes apart, and the 24 basic ones into themselves")
    func compatibilityLetters() throws {
        for value in UInt32(0x3131)...0x3163 {
            let letter = String(Character(try #require(Unicode.Scalar(value))))
            #expect(try !Hangul.letters(of: letter).isEmpty)
        }
        for jamo in Jamo.allCases { #expect(try Hangul.letters(of: jamo.rawValue) == [jamo]) }
        #expect(Jamo.allCases.count == 24)
    }

    @Test(
        "what is not Hangul is refused by name",
        arguments: [("사람!", "!"), ("a", "a"), ("사 람", " "), ("ㆍ", "ㆍ"), ("ㅤ", "\u{3164}"), ("漢", "漢"), ("🟩", "🟩")])
    func refused(text: String, character: Character) {
        #expect(throws: NotHangul(character: character)) { try Hangul.letters(of: text) }
    }

    @Test("letters have exactly the readings that come apart into them")
    func readings() throws {
        #expect(Hangul.readings(of: try Hangul.letters(of: "사람")) == ["사람"])
        #expect(Set(Hangul.readings(of: try Hangul.letters(of: "바까"))) == ["박가", "바까"])
        #expect(Hangul.readings(of: []).isEmpty)
        #expect(Hangul.readings(of: [.a, .siot]).isEmpty)

        var random = SeededRandom(for: "readings")
        for _ in 0..<300 {
            let text = (0..<Int.random(in: 1...4, using: &random)).compactMap { _ in
                Unicode.Scalar(UInt32.random(in: 0xAC00...0xD7A3, using: &random)).map { String(Character($0)) }
            }.joined()
            let letters = try Hangul.letters(of: text)
            let readings = Hangul.readings(of: letters, limit: 10_000)
            #expect(readings.contains(text), "seed \(random.seed)")
            #expect(Set(readings).count == readings.count, "seed \(random.seed)")
            for reading in readings { #expect(try Hangul.letters(of: reading) == letters, "seed \(random.seed)") }
        }
    }

    @Test("a long text without a reading is answered too", .timeLimit(.minutes(10)))
    func noReading() {
        let letters = Array(repeating: [Jamo.giyeok, .giyeok, .a], count: 200).flatMap { $0 } + [.a]
        #expect(Hangul.readings(of: letters).isEmpty)
    }

    @Test(
        "letters are shown as syllables as far as they fill them",
        arguments: [
            ("ㅅㅏㄹㅏㅁ", "사람"), ("ㅅㅏㄹㄱㄱ", "삵ㄱ"), ("ㅏㅁ", "ㅏㅁ"), ("ㅅ", "ㅅ"), ("", ""), ("ㄴㅗㄹㅏㅣ", "노래"), ("ㅅㅏㅅㅏㅅㅏ", "사사사"),
        ])
    func composed(letters: String, expected: String) throws {
        #expect(Hangul.composed(try Hangul.letters(of: letters)) == expected)
    }

    private func joined(_ letters: [Jamo]) -> String { letters.map(\.rawValue).joined() }
}
