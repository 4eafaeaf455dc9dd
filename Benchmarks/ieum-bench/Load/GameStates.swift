/// States like those that 한들 saves: six rows of five jamo with their marks, a keyboard, an answer; about 1.1 KB each.
///
/// Made from a fixed seed, so that every run and both sides of every ratio store the same bytes.
struct GameStates {
    /// JSON texts in UTF-8, without line breaks.
    let all: [[UInt8]]

    init(count: Int = 100) {
        var random = SplitMix(seed: 20_261_129)
        all = (0..<count).map { _ in Array(Self.state(&random).utf8) }
    }

    /// The states' mean size in bytes.
    var meanSize: Double { Double(all.reduce(0) { $0 + $1.count }) / Double(all.count) }

    private static let words: [(word: String, jamo: String)] = [
        ("하늘", "ㅎㅏㄴㅡㄹ"), ("바람", "ㅂㅏㄹㅏㅁ"), ("사람", "ㅅㅏㄹㅏㅁ"), ("마음", "ㅁㅏㅇㅡㅁ"), ("구름", "ㄱㅜㄹㅡㅁ"),
        ("가을", "ㄱㅏㅇㅡㄹ"), ("겨울", "ㄱㅕㅇㅜㄹ"), ("이슬", "ㅇㅣㅅㅡㄹ"), ("노을", "ㄴㅗㅇㅡㄹ"), ("오늘", "ㅇㅗㄴㅡㄹ"),
    ]
    private static let marks = ["absent", "present", "right"]

    private static func state(_ random: inout SplitMix) -> String {
        let answer = words[Int.random(in: words.indices, using: &random)]
        let rowsPlayed = Int.random(in: 3...5, using: &random)
        let board = (0..<6).map { row -> String in
            let guess = Array(words[Int.random(in: words.indices, using: &random)].jamo)
            let keys = (0..<5).map { column -> String in
                guard row < rowsPlayed else { return #"{"jamo":"","mark":"empty"}"# }
                return #"{"jamo":"\#(guess[column])","mark":"\#(marks[Int.random(in: 0..<3, using: &random)])"}"#
            }
            return "[\(keys.joined(separator: ","))]"
        }
        let keyMarks = String((0..<24).map { _ in "apr."[Int.random(in: 0..<4, using: &random)] })
        return """
            {"answer":"\(answer.word)","answerBoard":[\(board.joined(separator: ","))],"currentColumn":0,\
            "currentRow":\(rowsPlayed),"didPlayerWin":false,"gameNumber":\(Int.random(in: 1...2000, using: &random)),\
            "isGameFinished":false,"jamoCount":5,"keyBoard":{"marks":"\(keyMarks)"}}
            """
    }
}

extension String {
    fileprivate subscript(offset: Int) -> Character { self[index(startIndex, offsetBy: offset)] }
}

/// A small generator of random numbers with a seed (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators").
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
