/// The keyboard with what the guesses have told so far: a key shows the best mark that its letter ever got.
public struct KeyBoard: Codable, Hashable, Sendable {
    /// The keys, in three rows from the top.
    public var rows: [[Key]]

    /// The two-set layout (두벌식) of the 24 basic letters, unmarked.
    public init() {
        rows = ["ㅂㅈㄷㄱㅅㅛㅕㅑ", "ㅁㄴㅇㄹㅎㅗㅓㅏㅣ", "ㅋㅌㅊㅍㅠㅜㅡ"].map { row in
            row.compactMap { Jamo(rawValue: String($0)) }.map { Key($0) }
        }
    }

    /// The mark of a letter's key; unmarked where there is no such key.
    public subscript(jamo: Jamo) -> Mark {
        for row in rows {
            for key in row where key.jamo == jamo { return key.mark }
        }
        return .unmarked
    }

    /// Takes up what a submitted row told. A mark is only ever raised.
    public mutating func learn(_ keys: [Key]) {
        for learned in keys where learned.jamo != nil {
            for row in rows.indices {
                for column in rows[row].indices where rows[row][column].jamo == learned.jamo {
                    rows[row][column].mark = max(rows[row][column].mark, learned.mark)
                }
            }
        }
    }
}
