import Handle
import TestSupport
import Testing

@Suite("Marks")
struct MarkTests {
    @Test(
        "a letter of the answer is given away once, right places first",
        arguments: [
            ("사람", "구름", "⬛⬛🟩⬛🟩"), ("사람", "나물", "⬛🟩🟨⬛🟨"), ("사람", "마음", "⬛🟩⬛⬛🟩"), ("사람", "보람", "⬛⬛🟩🟩🟩"),
            ("사람", "사랑", "🟩🟩🟩🟩⬛"), ("사람", "사람", "🟩🟩🟩🟩🟩"), ("노래", "나라ㅗ", "🟩⬛🟩🟩🟨"),
        ])
    func examples(answer: String, guess: String, expected: String) throws {
        let marks = Mark.marks(of: try Hangul.letters(of: guess), against: try Hangul.letters(of: answer))
        #expect(marks.map(\.tile).joined() == expected)
    }

    @Test("marks are those of a naive model, for any guess of any length")
    func naiveModel() {
        var random = SeededRandom(for: "marks")
        for _ in 0..<20_000 {
            // Few letters, so that they repeat.
            let alphabet = Jamo.allCases.prefix(Int.random(in: 1...5, using: &random))
            func word(_ length: Int) -> [Jamo] {
                (0..<length).map { _ in alphabet.randomElement(using: &random) ?? .a }
            }
            let length = Int.random(in: 0...6, using: &random)
            let answer = word(length)
            let guess = word(Bool.random(using: &random) ? length : Int.random(in: 0...6, using: &random))
            #expect(
                Mark.marks(of: guess, against: answer) == model(guess, answer),
                "seed \(random.seed): \(guess), \(answer)")
        }
    }

    /// Crosses letters of the answer out one by one, as a person does on paper.
    private func model(_ guess: [Jamo], _ answer: [Jamo]) -> [Mark] {
        var left = answer.map(Optional.some)
        var marks: [Mark] = guess.map { _ in .absent }
        for place in guess.indices where place < answer.count && guess[place] == answer[place] {
            marks[place] = .rightPlace
            left[place] = nil
        }
        for place in guess.indices where marks[place] == .absent {
            if let found = left.firstIndex(of: guess[place]) {
                marks[place] = .wrongPlace
                left[found] = nil
            }
        }
        return marks
    }
}

@Suite("Keyboard")
struct KeyBoardTests {
    @Test("the keyboard has the 24 letters once each, in the rows of the two-set layout")
    func layout() {
        let rows = KeyBoard().rows.map { $0.compactMap(\.jamo?.rawValue).joined() }
        #expect(rows == ["ㅂㅈㄷㄱㅅㅛㅕㅑ", "ㅁㄴㅇㄹㅎㅗㅓㅏㅣ", "ㅋㅌㅊㅍㅠㅜㅡ"])
        #expect(Set(rows.joined()).count == 24)
        #expect(KeyBoard().rows.joined().allSatisfy { $0.mark == .unmarked })
    }

    @Test("a key shows the best mark that its letter got, in any order")
    func bestMark() {
        for first in Mark.allCases {
            for second in Mark.allCases {
                var keyBoard = KeyBoard()
                keyBoard.learn([Key(.siot, mark: first), Key(.siot, mark: second), Key()])
                #expect(keyBoard[.siot] == max(first, second))
                #expect(keyBoard[.a] == .unmarked)
            }
        }
        #expect(Mark.allCases.sorted() == [.unmarked, .absent, .wrongPlace, .rightPlace])
    }
}
