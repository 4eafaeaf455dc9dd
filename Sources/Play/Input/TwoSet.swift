import Handle

/// The two-set keyboard (두벌식, KS X 5002) for players without an input method: the letter that stands on a key of a Latin
/// keyboard, in basic letters.
package enum TwoSet {
    /// The basic letters of a key; nil: none stands on it.
    ///
    /// A shifted key that has a letter of its own (ㄲ on R, ㅖ on P) comes apart like any other compound; another one, as with
    /// Caps Lock, is the plain key.
    package static func letters(on key: Unicode.Scalar) -> [Jamo]? {
        guard key.isASCII else { return nil }
        return keys[key] ?? keys[Unicode.Scalar(UInt8(key.value) | 0x20)]
    }

    private static let keys: [Unicode.Scalar: [Jamo]] = {
        let layout: KeyValuePairs = [
            "qwertyuiop": "ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔ", "asdfghjkl": "ㅁㄴㅇㄹㅎㅗㅓㅏㅣ", "zxcvbnm": "ㅋㅌㅊㅍㅠㅜㅡ", "QWERTOP": "ㅃㅉㄸㄲㅆㅒㅖ",
        ]
        var keys: [Unicode.Scalar: [Jamo]] = [:]
        for (latin, hangul) in layout {
            for (key, letter) in zip(latin.unicodeScalars, hangul) {
                keys[key] = try? Hangul.letters(of: String(letter))
            }
        }
        return keys
    }()
}
