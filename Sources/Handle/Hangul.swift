/// Hangul taken apart into basic letters and put together again.
///
/// Arithmetic and order of letters are those of the Unicode Standard, section 3.12, "Conjoining Jamo Behavior".
public enum Hangul {
    /// Takes a text apart into the basic letters that it is written with, in writing order.
    ///
    /// A doubled or compound letter counts as what it is made of: 꽃 is ㄱㄱㅗㅊ, 노래 is ㄴㅗㄹㅏㅣ, 몫 is ㅁㅗㄱㅅ, 의자 is ㅇㅡㅣㅈㅏ.
    /// Syllables (U+AC00 to U+D7A3), compatibility letters (U+3131 to U+3163) and conjoining letters (U+1100, U+1161, U+11A8 and
    /// following, of modern Hangul) may be mixed, so that the composed and the decomposed form of a text (NFC, NFD) give the same.
    ///
    /// - Throws: ``NotHangul`` with the first character that is none of these, a space too.
    public static func letters(of text: String) throws(NotHangul) -> [Jamo] {
        var letters: [Jamo] = []
        for scalar in text.unicodeScalars where !append(scalar, to: &letters) {
            throw NotHangul(character: Character(scalar))
        }
        return letters
    }

    /// Whether a text consists of one syllable block or more, each a single code point, and of nothing else.
    public static func isSyllables(_ text: String) -> Bool {
        !text.isEmpty && text.unicodeScalars.allSatisfy { syllables.contains($0.value) }
    }

    private static func append(_ scalar: Unicode.Scalar, to letters: inout [Jamo]) -> Bool {
        let value = scalar.value
        switch value {
        case syllables:
            let index = Int(value - syllables.lowerBound)
            letters += leads[index / (vowels.count * tailCount)]
            letters += vowels[index / tailCount % vowels.count]
            let tail = index % tailCount
            if tail > 0 { letters += tails[tail - 1] }
        case 0x1100...0x1112: letters += leads[Int(value - 0x1100)]
        case 0x1161...0x1175: letters += vowels[Int(value - 0x1161)]
        case 0x11A8...0x11C2: letters += tails[Int(value - 0x11A8)]
        case 0x3131...0x314E: letters += compatibilityConsonants[Int(value - 0x3131)]
        case 0x314F...0x3163: letters += vowels[Int(value - 0x314F)]
        default: return false
        }
        return true
    }

    static let syllables: ClosedRange<UInt32> = 0xAC00...0xD7A3

    /// Tails a syllable can have, "none" included.
    static let tailCount = 28

    /// The 19 leading consonants, in the order of their code points.
    static let leads = table("ㄱ ㄱㄱ ㄴ ㄷ ㄷㄷ ㄹ ㅁ ㅂ ㅂㅂ ㅅ ㅅㅅ ㅇ ㅈ ㅈㅈ ㅊ ㅋ ㅌ ㅍ ㅎ")

    /// The 21 vowels, in the order of their code points, which the compatibility letters share.
    static let vowels = table("ㅏ ㅏㅣ ㅑ ㅑㅣ ㅓ ㅓㅣ ㅕ ㅕㅣ ㅗ ㅗㅏ ㅗㅏㅣ ㅗㅣ ㅛ ㅜ ㅜㅓ ㅜㅓㅣ ㅜㅣ ㅠ ㅡ ㅡㅣ ㅣ")

    /// The 27 tails, in the order of their code points.
    static let tails = table(
        "ㄱ ㄱㄱ ㄱㅅ ㄴ ㄴㅈ ㄴㅎ ㄷ ㄹ ㄹㄱ ㄹㅁ ㄹㅂ ㄹㅅ ㄹㅌ ㄹㅍ ㄹㅎ ㅁ ㅂ ㅂㅅ ㅅ ㅅㅅ ㅇ ㅈ ㅊ ㅋ ㅌ ㅍ ㅎ")

    /// The 30 compatibility consonants, U+3131 to U+314E.
    private static let compatibilityConsonants = table(
        "ㄱ ㄱㄱ ㄱㅅ ㄴ ㄴㅈ ㄴㅎ ㄷ ㄷㄷ ㄹ ㄹㄱ ㄹㅁ ㄹㅂ ㄹㅅ ㄹㅌ ㄹㅍ ㄹㅎ ㅁ ㅂ ㅂㅂ ㅂㅅ ㅅ ㅅㅅ ㅇ ㅈ ㅈㅈ ㅊ ㅋ ㅌ ㅍ ㅎ")

    private static func table(_ text: String) -> [[Jamo]] {
        text.split(separator: " ").map { letters in letters.compactMap { Jamo(rawValue: String($0)) } }
    }
}

/// A text that was to be Hangul has another character in it.
public struct NotHangul: Error, Equatable, Sendable, CustomStringConvertible {
    /// The first such character.
    public var character: Character

    /// Makes the error of a character.
    public init(character: Character) {
        self.character = character
    }

    /// What is wrong, in one line.
    public var description: String { "“\(character)” is not a letter of Hangul" }
}
