/// A basic letter of Hangul.
public struct Jamo: Hashable, Sendable {
    /// The letter, of the block U+3131 to U+3163.
    public var letter: Character

    /// Makes one of the letter's character.
    public init(letter: Character) {
        self.letter = letter
    }
}
