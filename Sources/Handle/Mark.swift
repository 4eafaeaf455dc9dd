/// What is known of a letter: of one on the board after its row was submitted, or of a key.
///
/// Marks are ordered by how much they tell: the greater of two is the one that a key shows.
public enum Mark: String, CaseIterable, Codable, Hashable, Sendable {
    /// Nothing is known yet.
    case unmarked = "none"
    /// The answer has no such letter, or no further one.
    case absent
    /// The answer has the letter, elsewhere.
    case wrongPlace
    /// The answer has the letter, here.
    case rightPlace

    /// The mark as a tile: ⬜, ⬛, 🟨 or 🟩.
    public var tile: String {
        switch self {
        case .unmarked: "⬜"
        case .absent: "⬛"
        case .wrongPlace: "🟨"
        case .rightPlace: "🟩"
        }
    }

    /// Marks a guess against an answer, letter for letter.
    ///
    /// A letter of the answer is given away once only: first to a guess of the right place, then to the others from the left. So of
    /// 마음 against 사람 (ㅁㅏㅇㅡㅁ against ㅅㅏㄹㅏㅁ) the last ㅁ is right and the first one absent: there is no second ㅁ.
    /// - Returns: One mark a letter of the guess. Guess and answer may be of different lengths.
    public static func marks(of guess: [Jamo], against answer: [Jamo]) -> [Mark] {
        var marks = Array(repeating: Mark.absent, count: guess.count)
        var left: [Jamo: Int] = [:]
        for (place, letter) in answer.enumerated() {
            if place < guess.count, guess[place] == letter {
                marks[place] = .rightPlace
            } else {
                left[letter, default: 0] += 1
            }
        }
        for (place, letter) in guess.enumerated() where marks[place] != .rightPlace {
            guard let count = left[letter], count > 0 else { continue }
            left[letter] = count - 1
            marks[place] = .wrongPlace
        }
        return marks
    }
}

extension Mark: Comparable {
    /// Whether one mark tells less than another.
    public static func < (one: Mark, other: Mark) -> Bool { one.weight < other.weight }

    private var weight: Int {
        switch self {
        case .unmarked: 0
        case .absent: 1
        case .wrongPlace: 2
        case .rightPlace: 3
        }
    }
}
