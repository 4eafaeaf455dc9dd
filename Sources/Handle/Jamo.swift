/// One of the 24 basic letters of Hangul.
///
/// The raw value is the letter of the block Hangul Compatibility Jamo, U+3131 to U+3163: what is drawn on a key, and what is
/// stored. Doubled and compound letters (ㄲ, ㅐ, ㄳ) are not in here: the game counts the basic letters that they are made of,
/// see ``Hangul/letters(of:)``.
public enum Jamo: String, CaseIterable, Codable, Hashable, Sendable {
    case giyeok = "ㄱ"
    case nieun = "ㄴ"
    case digeut = "ㄷ"
    case rieul = "ㄹ"
    case mieum = "ㅁ"
    case bieup = "ㅂ"
    case siot = "ㅅ"
    case ieung = "ㅇ"
    case jieut = "ㅈ"
    case chieut = "ㅊ"
    case kieuk = "ㅋ"
    case tieut = "ㅌ"
    case pieup = "ㅍ"
    case hieut = "ㅎ"
    case a = "ㅏ"
    case ya = "ㅑ"
    case eo = "ㅓ"
    case yeo = "ㅕ"
    case o = "ㅗ"
    case yo = "ㅛ"
    case u = "ㅜ"
    case yu = "ㅠ"
    case eu = "ㅡ"
    case i = "ㅣ"

    /// The letter as a character.
    public var letter: Character { Character(rawValue) }

    /// Whether the letter is one of the ten basic vowels.
    public var isVowel: Bool {
        switch self {
        case .a, .ya, .eo, .yeo, .o, .yo, .u, .yu, .eu, .i: true
        case .giyeok, .nieun, .digeut, .rieul, .mieum, .bieup, .siot, .ieung, .jieut, .chieut, .kieuk, .tieut, .pieup,
            .hieut:
            false
        }
    }
}

extension Jamo: CustomStringConvertible {
    /// The letter.
    public var description: String { rawValue }
}
