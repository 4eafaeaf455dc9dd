import Testing

@testable import Wire

@Suite("The JSON check")
struct JSONCheckTests {
    @Test("valid texts pass", arguments: JSONCorpus.valid)
    func valid(text: String) throws {
        try JSONCheck.check(Array(text.utf8).span)
    }

    @Test("each other text is refused for its reason, at its byte", arguments: JSONCorpus.invalid + JSONCorpus.onlyOurs)
    func invalid(sample: JSONCorpus.Invalid) {
        let failure = #expect(throws: JSONCheck.Failure.self) { try JSONCheck.check(Array(sample.text.utf8).span) }
        #expect(failure == JSONCheck.Failure(reason: sample.reason, offset: sample.offset))
    }

    @Test("a string's end is found at every place in a word of eight bytes")
    func stringEnds() throws {
        for length in 0..<40 {
            for letter in ["a", "é", "한", "\u{7F}", "\u{80}"] {
                let inner = String(repeating: letter, count: length)
                try JSONCheck.check(Array("\"\(inner)\"".utf8).span)
                try JSONCheck.check(Array("[\"\(inner)\\n\(inner)\",1]".utf8).span)
                let open = Array("\"\(inner)".utf8)
                let failure = #expect(throws: JSONCheck.Failure.self) { try JSONCheck.check(open.span) }
                #expect(failure == JSONCheck.Failure(reason: .endsInString, offset: open.count))
                let bad = open + [0x1F] + Array("\"".utf8)
                let control = #expect(throws: JSONCheck.Failure.self) { try JSONCheck.check(bad.span) }
                #expect(control == JSONCheck.Failure(reason: .controlCharacterInString, offset: open.count))
            }
        }
    }

    @Test("nesting is remembered at every depth, objects and arrays mixed")
    func nesting() throws {
        var random = SeededRandom.fresh()
        for _ in 0..<300 {
            let depth = Int.random(in: 1...512, using: &random)
            let kinds = (0..<depth).map { _ in random.chance(0.5) }
            let opened = kinds.map { $0 ? "{\"a\":" : "[" }.joined()
            let closed = kinds.reversed().map { $0 ? "}" : "]" }
            try JSONCheck.check(Array((opened + "0" + closed.joined()).utf8).span)
            // One closing mark of the wrong kind.
            let wrong = Int.random(in: 0..<depth, using: &random)
            var mixed = closed
            mixed[wrong] = mixed[wrong] == "}" ? "]" : "}"
            let failure = #expect(throws: JSONCheck.Failure.self) {
                try JSONCheck.check(Array((opened + "0" + mixed.joined()).utf8).span)
            }
            #expect(failure?.offset == opened.utf8.count + 1 + wrong)
        }
    }

    @Test("random texts pass; of the same texts damaged, those pass that a second implementation takes")
    func agreesWithReference() throws {
        var random = SeededRandom.fresh()
        let letters = Array("{}[]\":,\\/ \t0123456789-+.eEtrufalsnu\u{1}\u{7F}".utf8)
        var refused = 0
        for _ in 0..<20_000 {
            var text = Array(random.json().utf8)
            try JSONCheck.check(text.span)
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = Int.random(in: 0...text.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: text.insert(letters.randomElement(using: &random) ?? 0, at: place)
                case 1 where place < text.count: text.remove(at: place)
                case 2 where place < text.count: text[place] = letters.randomElement(using: &random) ?? 0
                default: text.removeLast(min(text.count, Int.random(in: 0...3, using: &random)))
                }
            }
            guard String(validating: text, as: UTF8.self) != nil else { continue }
            let isTaken: Bool
            do throws(JSONCheck.Failure) {
                try JSONCheck.check(text.span)
                isTaken = true
            } catch {
                #expect((0...text.count).contains(error.offset))
                // Damage can make a number that is JSON and no numeric: the reference knows no such limit, and reads on.
                guard error.reason != .numberOutOfRange else { continue }
                isTaken = false
                refused += 1
            }
            var reference = ReferenceJSON(text: text)
            #expect(isTaken == reference.isValid(), "\(String(decoding: text, as: UTF8.self))")
        }
        #expect(refused > 1_000)
    }
}

/// RFC 8259 by recursive descent, written for clarity. It knows no limits of numbers: the texts it judges stay inside.
private struct ReferenceJSON {
    var text: [UInt8]
    var place = 0

    mutating func isValid() -> Bool {
        value() && place == text.count
    }

    private var next: UInt8? { place < text.count ? text[place] : nil }

    private mutating func take(_ character: Character) -> Bool {
        guard let next, next == character.asciiValue else { return false }
        place += 1
        return true
    }

    private mutating func blanks() {
        while take(" ") || take("\t") || take("\n") || take("\r") {}
    }

    private mutating func value() -> Bool {
        blanks()
        defer { blanks() }
        switch next {
        case UInt8(ascii: "{"): return list("{", "}") { $0.member() }
        case UInt8(ascii: "["): return list("[", "]") { $0.value() }
        case UInt8(ascii: "\""): return string()
        case UInt8(ascii: "t"): return "true".allSatisfy { take($0) }
        case UInt8(ascii: "f"): return "false".allSatisfy { take($0) }
        case UInt8(ascii: "n"): return "null".allSatisfy { take($0) }
        default: return number()
        }
    }

    private mutating func list(
        _ open: Character, _ close: Character, _ element: (inout ReferenceJSON) -> Bool
    ) -> Bool {
        guard take(open) else { return false }
        blanks()
        if take(close) { return true }
        repeat {
            guard element(&self) else { return false }
        } while take(",")
        return take(close)
    }

    private mutating func member() -> Bool {
        blanks()
        guard string() else { return false }
        blanks()
        return take(":") && value()
    }

    private mutating func string() -> Bool {
        guard take("\"") else { return false }
        while let byte = next {
            if take("\"") { return true }
            guard byte >= 0x20 else { return false }
            place += 1
            if byte == UInt8(ascii: "\\"), !escape() { return false }
        }
        return false
    }

    private mutating func escape() -> Bool {
        guard let letter = next else { return false }
        place += 1
        guard letter == UInt8(ascii: "u") else { return "\"\\/bfnrt".utf8.contains(letter) }
        guard let unit = hex() else { return false }
        guard (0xD800...0xDFFF).contains(unit) else { return unit != 0 }
        guard unit < 0xDC00, take("\\"), take("u"), let low = hex() else { return false }
        return (0xDC00...0xDFFF).contains(low)
    }

    private mutating func hex() -> Int? {
        guard place + 4 <= text.count else { return nil }
        let digits = String(decoding: text[place..<(place + 4)], as: UTF8.self)
        guard digits.allSatisfy(\.isHexDigit) else { return nil }
        place += 4
        return Int(digits, radix: 16)
    }

    private mutating func digits() -> Int {
        let start = place
        while let next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(next) { place += 1 }
        return place - start
    }

    private mutating func number() -> Bool {
        _ = take("-")
        let first = place
        let startsWithZero = next == UInt8(ascii: "0")
        let integer = digits()
        guard integer > 0, !startsWithZero || integer == 1 else { return false }
        var fraction = 0
        if take(".") {
            fraction = digits()
            guard fraction > 0 else { return false }
        }
        // Zero stays zero, however great its exponent.
        let isZero = text[first..<place].allSatisfy { $0 == UInt8(ascii: "0") || $0 == UInt8(ascii: ".") }
        guard take("e") || take("E") else { return true }
        let isNegative = next == UInt8(ascii: "-")
        if !take("+") { _ = take("-") }
        let start = place
        guard digits() > 0 else { return false }
        // A damaged exponent may leave numeric's range: PostgreSQL's rule, for short numbers.
        let exponent = Int(String(decoding: text[start..<place].prefix(9), as: UTF8.self)) ?? 0
        return isNegative ? fraction + exponent <= 16_383 : isZero || exponent + integer <= 131_072
    }
}
