/// A letter with its mark: a cell of the board, or a key of the keyboard.
public struct Key: Hashable, Sendable {
    /// The letter; nil for a cell that nothing was typed into.
    public var jamo: Jamo?
    /// What is known of it.
    public var mark: Mark

    /// Makes a cell or a key; without arguments an empty cell.
    public init(_ jamo: Jamo? = nil, mark: Mark = .unmarked) {
        self.jamo = jamo
        self.mark = mark
    }
}

extension Key: Codable {
    private enum CodingKeys: String, CodingKey {
        case jamo, mark
    }

    /// Reads `{"jamo":"ㅅ","mark":"absent"}`; an empty text is an empty cell, a text that is no basic letter is an error.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let letter = try values.decode(String.self, forKey: .jamo)
        guard let jamo = Jamo(rawValue: letter) else {
            guard letter.isEmpty else {
                throw DecodingError.dataCorruptedError(
                    forKey: .jamo, in: values, debugDescription: "“\(letter)” is not one of the 24 basic letters")
            }
            self.init(nil, mark: try values.decode(Mark.self, forKey: .mark))
            return
        }
        self.init(jamo, mark: try values.decode(Mark.self, forKey: .mark))
    }

    /// Writes what ``init(from:)`` reads.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(jamo?.rawValue ?? "", forKey: .jamo)
        try values.encode(mark, forKey: .mark)
    }
}
