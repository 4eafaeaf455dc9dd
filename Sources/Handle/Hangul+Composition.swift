extension Hangul {
    /// Puts basic letters together for display: the first of ``readings(of:limit:)``, or, where the letters do not fill
    /// syllables to the end, the longest beginning that does and then the rest as single letters.
    ///
    /// ㅅㅏㄹㅏㅁ gives 사람, ㅅㅏㄹㄱㄱ gives 삵ㄱ, ㅏㅁ gives ㅏㅁ.
    public static func composed(_ letters: [Jamo]) -> String {
        // A syllable has 2 letters at least, so the beginnings worth trying end anywhere; the whole text is tried first.
        for end in stride(from: letters.count, through: 2, by: -1) {
            if let reading = readings(of: Array(letters[..<end]), limit: 1).first {
                return reading + letters[end...].map(\.rawValue).joined()
            }
        }
        return letters.map(\.rawValue).joined()
    }

    /// Every text of whole syllables that comes apart into exactly these letters, in NFC, the likeliest first.
    ///
    /// Several can be: ㅂㅏㄱㄱㅏ is 바까 and 박가. Whoever has a dictionary asks it about each. Compound letters come before
    /// single ones, a tail before the next syllable's lead.
    /// - Parameters:
    ///   - letters: Basic letters in writing order.
    ///   - limit: How many to look for; their number can double with every syllable.
    public static func readings(of letters: [Jamo], limit: Int = 16) -> [String] {
        var search = Search(letters: letters, limit: limit)
        search.run(from: 0, "")
        return search.found
    }

    private struct Search {
        let letters: [Jamo]
        let limit: Int
        var found: [String] = []
        /// Places from which no reading reaches the end: what keeps a long text that has none from taking for ever.
        var deadEnds: Set<Int> = []

        init(letters: [Jamo], limit: Int) {
            self.letters = letters
            self.limit = limit
        }

        mutating func run(from start: Int, _ text: String) {
            if start == letters.count {
                if !text.isEmpty { found.append(text) }
                return
            }
            guard found.count < limit, !deadEnds.contains(start) else { return }
            let before = found.count
            for (lead, afterLead) in matches(leads, at: start) {
                for (vowel, afterVowel) in matches(vowels, at: afterLead) {
                    for (tail, afterTail) in matches(tails, at: afterVowel) {
                        run(from: afterTail, text + syllable(lead, vowel, tail + 1))
                    }
                    run(from: afterVowel, text + syllable(lead, vowel, 0))
                }
            }
            if found.count == before, found.count < limit { deadEnds.insert(start) }
        }

        /// The entries of a table that the letters go on with, the longest first.
        private func matches(_ table: [[Jamo]], at start: Int) -> [(entry: Int, end: Int)] {
            let rest = letters[start...]
            return table.indices.filter { rest.starts(with: table[$0]) }
                .map { ($0, start + table[$0].count) }
                .sorted { $0.end > $1.end }
        }

        private func syllable(_ lead: Int, _ vowel: Int, _ tail: Int) -> String {
            let value = Int(syllables.lowerBound) + (lead * vowels.count + vowel) * tailCount + tail
            return Unicode.Scalar(UInt32(value)).map { String(Character($0)) } ?? ""
        }
    }
}
