/// A line from the daemon, taken apart for the set-up, where speed does not matter.
struct ReplyLine {
    /// The whole line.
    let text: String
    /// Its first word: `OK`, `GAME`, `END`, `ERR`, `*` …
    let verb: Substring
    private let words: [Substring]

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        text = String(decoding: bytes, as: UTF8.self)
        words = text.split(separator: " ", maxSplits: 12)
        verb = words.first ?? ""
    }

    /// The positional word at a place after the verb.
    func word(_ index: Int) -> String? {
        words.indices.contains(index + 1) ? String(words[index + 1]) : nil
    }

    /// The value of an option.
    func value(_ key: String) throws -> String {
        for word in words where word.hasPrefix("\(key)=") { return String(word.dropFirst(key.count + 1)) }
        throw BenchError("there is no \(key)= in the daemon's reply: \(text.prefix(200))")
    }

    /// The value of an option as a number.
    func number(_ key: String) throws -> Int64 {
        guard let number = Int64(try value(key)) else { throw BenchError("\(key)= is no number: \(text.prefix(200))") }
        return number
    }
}
