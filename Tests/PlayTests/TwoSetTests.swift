import Handle
import TestSupport
import Testing

@testable import Play

/// What a key of the two-set layout types, written out a second time: 33 keys, the seven shifted ones included.
private let layout: [(key: Character, letters: String)] = [
    ("q", "ㅂ"), ("w", "ㅈ"), ("e", "ㄷ"), ("r", "ㄱ"), ("t", "ㅅ"), ("y", "ㅛ"), ("u", "ㅕ"), ("i", "ㅑ"), ("o", "ㅏㅣ"),
    ("p", "ㅓㅣ"), ("a", "ㅁ"), ("s", "ㄴ"), ("d", "ㅇ"), ("f", "ㄹ"), ("g", "ㅎ"), ("h", "ㅗ"), ("j", "ㅓ"), ("k", "ㅏ"),
    ("l", "ㅣ"), ("z", "ㅋ"), ("x", "ㅌ"), ("c", "ㅊ"), ("v", "ㅍ"), ("b", "ㅠ"), ("n", "ㅜ"), ("m", "ㅡ"), ("Q", "ㅂㅂ"),
    ("W", "ㅈㅈ"), ("E", "ㄷㄷ"), ("R", "ㄱㄱ"), ("T", "ㅅㅅ"), ("O", "ㅑㅣ"), ("P", "ㅕㅣ"),
]

/// Types a text and gives the letters that came of it.
private func typed(_ text: String, in reader: inout KeyReader) -> [Jamo] {
    text.utf8.flatMap { byte -> [Jamo] in
        guard case .letters(let letters)? = reader.read(byte) else { return [] }
        return letters
    }
}

private func jamo(_ text: String) -> [Jamo] { text.compactMap { Jamo(rawValue: String($0)) } }

@Suite("Typing Hangul")
struct TwoSetTests {
    @Test("every key types its letter; a shifted key without one of its own types the plain one; nothing else types")
    func keys() {
        for code in UInt32(0)...0x2FF {
            guard let scalar = Unicode.Scalar(code) else { continue }
            let character = Character(scalar)
            let lower =
                layout.first { $0.key == character } ?? layout.first { String($0.key) == character.lowercased() }
            let expected = scalar.isASCII ? lower.map { jamo($0.letters) } : nil
            #expect(TwoSet.letters(on: scalar) == expected, "\(code)")
        }
        #expect(TwoSet.letters(on: "한") == nil)
    }

    @Test(
        "all sequences of three keys come apart into their letters, and what is shown for them comes apart into the same"
    )
    func sequences() throws {
        var reader = KeyReader()
        var count = 0
        for first in layout {
            for second in layout {
                for third in layout {
                    let letters = typed("\(first.key)\(second.key)\(third.key)", in: &reader)
                    let expected = jamo(first.letters + second.letters + third.letters)
                    let shown = Hangul.composed(letters)
                    guard letters == expected, try Hangul.letters(of: shown) == letters else {
                        Issue.record("\(first.key)\(second.key)\(third.key): \(letters), shown as \(shown)")
                        continue
                    }
                    count += 1
                }
            }
        }
        #expect(count == 33 * 33 * 33)
    }

    @Test("random keys, syllables of an input method, NFC or NFD, and Backspace: the row is what a simple model says")
    func randomKeys() throws {
        var random = SeededRandom(for: "TwoSetTests.randomKeys")
        var reader = KeyReader()
        for round in 0..<300 {
            var game = Game(answer: "사람")
            var model: [Jamo] = []
            for _ in 0..<30 {
                let text: String
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    text = "\u{7F}"
                    if !model.isEmpty { model.removeLast() }
                case 1:
                    let key = layout[Int.random(in: layout.indices, using: &random)]
                    text = String(key.key)
                    model += jamo(key.letters)
                default:
                    let value = UInt32.random(in: 0xAC00...0xD7A3, using: &random)
                    let syllable = Unicode.Scalar(value).map { String(Character($0)) } ?? ""
                    model += try Hangul.letters(of: syllable)
                    text = Bool.random(using: &random) ? syllable : syllable.decomposedStringWithCanonicalMapping
                }
                model = Array(model.prefix(5))
                for byte in text.utf8 {
                    switch reader.read(byte) {
                    case .letters(let letters): game.make(.type(letters))
                    case .backspace: game.make(.deleteLast)
                    case let other: #expect(other == nil)
                    }
                }
                guard game.typed == model, try Hangul.letters(of: Hangul.composed(game.typed)) == model else {
                    Issue.record("round \(round): \(game.typed) instead of \(model)")
                    return
                }
            }
        }
    }
}
