import Foundation
import Synchronization
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("The coder of states")
struct StateCodingTests {
    // MARK: Writing

    @Test("20,000 random values are written as Foundation writes them, byte for byte")
    func randomValues() throws {
        var random = SeededRandom(for: "states")
        var (written, refused, proven) = (0, 0, 0)
        for _ in 0..<20_000 {
            let value = Sprig.random(4, &random)
            let expected = try? FoundationCoder.encode(value)
            let state = try? StateWriting.provenState(of: value)
            let bytes = state?.text
            if let state, state.isProven { try JSONCheck.check(state.text.span) }
            if bytes != expected {
                Issue.record("\(value)\nours:   \(Self.text(bytes))\ntheirs: \(Self.text(expected))")
                return
            }
            if bytes == nil { refused += 1 } else { written += 1 }
            proven += state?.isProven == true ? 1 : 0
        }
        #expect(written > 15_000 && refused > 0 && proven > 5_000)
    }

    @Test("a type that catches what fails and goes on has all the rest written, 20,000 times")
    func caughtFailures() throws {
        var random = SeededRandom(for: "caught failures")
        for _ in 0..<20_000 {
            // Foundation's encoder stops the process after some of these.
            let pair = Sprig.failingPair(&random)
            let (ours, expected) = (try? StateWriting.state(of: pair.failing), try? StateWriting.state(of: pair.sound))
            if ours != expected {
                Issue.record("\(pair.failing)\nis:     \(Self.text(ours))\nshould: \(Self.text(expected))")
                return
            }
        }
    }

    @Test("small values are written as they are now, however many there were before, and by whichever thread")
    func smallValues() async throws {
        struct Cell: Codable, Equatable {
            var row: Int16
            var column: Int16
            var mark: Mood
        }
        enum Mood: Int8, Codable { case low = -1, high = 1 }
        var random = SeededRandom(for: "small values")
        let boards = (0..<300).map { _ in
            (0..<Int.random(in: 0...90, using: &random)).map { _ in
                let most: Int16 = Bool.random(using: &random) ? 3 : .max
                return Cell(
                    row: .random(in: 0...most, using: &random), column: .random(in: 0...most, using: &random),
                    mark: Bool.random(using: &random) ? .low : .high)
            }
        }
        let expected = try boards.map { try FoundationCoder.encode(["cells": $0]) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for (board, text) in zip(boards, expected) {
                        let state = try StateWriting.state(of: ["cells": board])
                        #expect(state == text)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("a type that writes something else from now on is believed")
    func unsteadyType() throws {
        for word in ["first", "second", "second", "third"] {
            Unsteady.word.withLock { $0 = word }
            #expect(
                try StateWriting.state(of: ["list": [Unsteady.one, .other, .one, .other]])
                    == Array("{\"list\":[\"\(word)\",\"other \(word)\",\"\(word)\",\"other \(word)\"]}".utf8))
        }
    }

    @Test("what is written to a container of an encoding that is over goes nowhere", arguments: [false, true])
    func lateWriting(fails: Bool) throws {
        let kept = Keeper.Kept()
        for _ in 0..<3 {
            let first = Result { try StateWriting.state(of: [[Keeper(kept: kept, fails: fails)]]) }
            if fails {
                #expect(throws: Keeper.Failure.self) { try first.get() }
            } else {
                #expect(try first.get() == Array("[[[\"kept\"]]]".utf8))
            }
            #expect(try StateWriting.state(of: Intruder(kept: kept)) == Array("{\"a\":[1,2],\"b\":[3]}".utf8))
        }
    }

    @Test(
        "what is written to a container of a value that is over, while another is written, stays with its own value",
        arguments: LateWriting.Held.allCases)
    func lateWritingInside(_ held: LateWriting.Held) throws {
        // More than once: an encoding begins with what the one before has allocated.
        for _ in 0..<3 {
            let kept = LateWriting.Kept()
            let state = try StateWriting.state(of: [["x": LateWriting(kept: kept, held: held)]])
            let first =
                switch held {
                case .list: #"["kept","late"]"#
                case .object: #"{"early":"kept","late":"late"}"#
                case .innerList: #"[["kept","late"]]"#
                case .innerObject: #"{"inner":{"early":"kept","late":"late"}}"#
                }
            #expect(Self.text(state) == #"[{"x":{"a":\#(first),"b":["own",["inner"]],"c":[1,2]}}]"#)
        }
    }

    @Test("values of every kind of type are written as Foundation writes them, and come back", arguments: Corpus.all)
    func corpus(_ sample: Corpus.Sample) throws {
        try sample.check()
    }

    @Test("the worked example's games are written as Foundation writes them, and read as it reads them")
    func games() throws {
        var random = SeededRandom(for: "games")
        for _ in 0..<200 {
            var game = WordGame(
                timestamp: DateText.date(.random(in: 0...4_000_000_000_000_000, using: &random)),
                answer: Sprig.text(&random).filter { $0 != "\0" })
            for row in game.answerBoard.indices where Bool.random(using: &random) {
                game.answerBoard[row][2] = Key(letter: Sprig.text(&random).filter { $0 != "\0" }, status: .misplaced)
            }
            let bytes = try StateWriting.state(of: game)
            #expect(try bytes == FoundationCoder.encode(game))
            #expect(try StateReading.value(WordGame.self, of: bytes) == game)
            let old = OldGame(id: game.id, timestamp: game.timestamp, answer: game.answer)
            #expect(try StateWriting.state(of: old) == FoundationCoder.encode(old))
        }
    }

    @Test(
        "what a type must not do is an error, where Foundation stops the process",
        arguments: [
            .twoContainers, .containerAfterValue, .twoValues, .neverEnding, .nestedForEver, .insideItself, .noNumber,
        ] as [Offence])
    func offences(_ offence: Offence) throws {
        #expect(throws: EncodingError.self) { try StateWriting.state(of: Offender(offence: offence)) }
        #expect(throws: EncodingError.self) { try StateWriting.state(of: ["a": [Offender(offence: offence)]]) }
    }

    @Test("a value nests as deep as a state may, and is refused beyond that")
    func nesting() throws {
        let deepest = try StateWriting.state(of: Lists(depth: Limits.maxStateDepth))
        // Foundation stops a little before.
        #expect(try StateWriting.state(of: Lists(depth: 500)) == FoundationCoder.encode(Lists(depth: 500)))
        #expect(throws: EncodingError.self) { try StateWriting.state(of: Lists(depth: StateWriting.maxDepth + 2)) }
        #expect(try StateReading.value(Lists.self, of: deepest).depth == Limits.maxStateDepth)
        for depth in Limits.maxStateDepth - 3...Limits.maxStateDepth + 3 {
            let state = try StateWriting.provenState(of: Lists(depth: depth))
            if state.isProven { try JSONCheck.check(state.text.span) }
            let passes = (try? JSONCheck.check(state.text.span)) != nil
            #expect(passes == (depth <= Limits.maxStateDepth))
        }
        let tooDeep = Array(repeating: UInt8(ascii: "["), count: 100_000)
        #expect(throws: DecodingError.self) { try StateReading.value(Lists.self, of: tooDeep) }
    }

    @Test("an error names the place")
    func places() throws {
        let error = try #require(
            #expect(throws: EncodingError.self) {
                try StateWriting.state(of: ["a": [["b": Date.distantPast], ["b": Date(timeIntervalSince1970: .nan)]]])
            })
        guard case .invalidValue(_, let context) = error else { throw error }
        #expect(context.codingPath.propertyPath == "a[1].b")
        let wrong = try #require(
            #expect(throws: DecodingError.self) {
                try StateReading.value([String: [[String: Int]]].self, of: Array(#"{"a":[{"b":1},{"b":"1"}]}"#.utf8))
            })
        guard case .typeMismatch(let asked, let place) = wrong else { throw wrong }
        #expect("\(asked)" == "Int")
        #expect(place.codingPath.propertyPath == "a[1].b")
    }

    // MARK: Reading

    @Test("damaged texts are read, or refused, as Foundation does it, and never trapped at")
    func damage() throws {
        var random = SeededRandom(for: "damage")
        let pieces = [
            "1", "-1", "0.5", "1e2", "-0", "1e999", "128", "-129", "9007199254740993", "\"x\"", "\"\\u00e9\"",
            "\"\\ud800\"",
            "null", "true", "[]", "{}", ",", ":", "\"", "\\", " ", "\n", "[", "]", "{", "}", "\u{0}", "\"NaN\"",
        ].map { Array($0.utf8) }
        var (read, refused) = (0, 0)
        for _ in 0..<20_000 {
            let sample = Corpus.all.randomElement(using: &random)
            guard let sample, var bytes = try? sample.bytes() else { continue }
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                let start = Int.random(in: 0...bytes.count, using: &random)
                let end = min(bytes.count, start + Int.random(in: 0...6, using: &random))
                bytes.replaceSubrange(start..<end, with: pieces.randomElement(using: &random) ?? [])
            }
            let isState = (try? RawJSON(checking: bytes)) != nil
            let (ours, theirs) = (sample.read(bytes), sample.readByFoundation(bytes))
            // What is no state is refused before it is decoded; here it must only do no harm.
            guard isState, !Self.hasTwins(bytes) else { continue }
            // A whole number that is spelled with a fraction or an exponent may be too much for Foundation.
            if theirs == nil, ours != nil, bytes.contains(where: { $0 | 0x20 == UInt8(ascii: "e") }) { continue }
            // And Foundation takes a fraction for none that a Double of so many digits cannot hold.
            if ours == nil, theirs != nil, Self.hasFineFraction(bytes) { continue }
            if ours != theirs {
                Issue.record("\(Self.text(bytes)) as \(sample)\nours:   \(ours ?? "-")\ntheirs: \(theirs ?? "-")")
                return
            }
            if ours == nil { refused += 1 } else { read += 1 }
        }
        #expect(read > 1_000 && refused > 1_000)
    }

    @Test(
        "numbers are exact, however they are spelled, and refused where they do not fit",
        arguments: [
            ("9223372036854775807", Int64.max), ("-9223372036854775808", .min), ("9223372036854775808", nil),
            ("9007199254740993.0", 9_007_199_254_740_993), ("9007199254740993e0", 9_007_199_254_740_993),
            ("1.2e1", 12), ("120e-1", 12), ("-0", 0), ("0e999999999999", 0), ("1e-1", nil), ("1.5", nil),
            ("1e99999", nil),
            ("922337203685477580.70e1", .max), ("0.0000000000000000000000000000001e31", 1),
        ] as [(String, Int64?)])
    func integers(_ text: String, _ expected: Int64?) {
        #expect((try? StateReading.value(Int64.self, of: Array(text.utf8))) == expected)
    }

    @Test("of a key that stands twice the last one counts; keys are the same in every normal form")
    func keys() throws {
        struct Value: Codable, Equatable { var é: Int }
        for text in [#"{"é":1,"é":2}"#, #"{"\u00e9":2}"#, "{\"e\u{301}\":2}", #"{"é":2,"è":1}"#] {
            #expect(try StateReading.value(Value.self, of: Array(text.utf8)) == Value(é: 2))
        }
        let many = Dictionary(uniqueKeysWithValues: (0..<5_000).map { ("é\($0)", $0) })
        #expect(try StateReading.value([String: Int].self, of: StateWriting.state(of: many)) == many)
        let clock = ContinuousClock()
        // Were keys looked up one by one, this would take minutes.
        #expect(
            try clock.measure { _ = try StateReading.value([String: Int].self, of: StateWriting.state(of: many)) }
                < .seconds(30))
    }

    private static func text(_ bytes: [UInt8]?) -> String {
        bytes.map { String(decoding: $0, as: UTF8.self) } ?? "refused"
    }

    /// Whether a number has a fraction behind fifteen digits and more.
    private static func hasFineFraction(_ bytes: [UInt8]) -> Bool {
        var digits = 0
        for byte in bytes {
            if byte == UInt8(ascii: "."), digits >= 15 { return true }
            digits = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) ? digits + 1 : 0
        }
        return false
    }

    /// Whether a key stands twice in an object.
    private static func hasTwins(_ bytes: [UInt8]) -> Bool {
        func has(_ raw: RawJSON) -> Bool {
            if let members = raw.members {
                let keys = members.map { String(decoding: $0.key, as: UTF8.self) }
                return Set(keys).count < keys.count || members.contains { has($0.value) }
            }
            return raw.elements?.contains { has($0) } ?? false
        }
        return (try? RawJSON(checking: bytes)).map { has($0) } ?? false
    }
}

/// Breaks the rule that what a type writes depends on its value alone.
private enum Unsteady: Encodable {
    case one, other

    static let word = Mutex("")

    func encode(to encoder: any Encoder) throws {
        let word = Self.word.withLock { $0 }
        var text = encoder.singleValueContainer()
        try text.encode(self == .one ? word : "other \(word)")
    }
}

/// Lists in lists.
private struct Lists: Codable {
    var depth: Int

    init(depth: Int) { self.depth = depth }

    func encode(to encoder: any Encoder) throws {
        var list = encoder.unkeyedContainer()
        if depth > 1 { try list.encode(Lists(depth: depth - 1)) }
    }

    init(from decoder: any Decoder) throws {
        guard var list = try? decoder.unkeyedContainer() else {
            depth = 0
            return
        }
        depth = try list.isAtEnd ? 1 : list.decode(Lists.self).depth + 1
    }
}

/// Keeps what it writes to, beyond its encoding.
private struct Keeper: Encodable {
    struct Failure: Error {}
    final class Kept {
        var list: (any UnkeyedEncodingContainer)?
    }

    let kept: Kept
    let fails: Bool

    func encode(to encoder: any Encoder) throws {
        var list = encoder.unkeyedContainer()
        try list.encode("kept")
        kept.list = list
        if fails { throw Failure() }
    }
}

/// Writes, while it is encoded, to what another encoding has left.
private struct Intruder: Encodable {
    let kept: Keeper.Kept

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Sprig.Name.self)
        try object.encode([1, 2], forKey: Sprig.Name("a"))
        try kept.list?.encode("late")
        try object.encode([3], forKey: Sprig.Name("b"))
    }
}

/// Has one value keep a container, and the next one write to it.
struct LateWriting {
    enum Held: CaseIterable { case list, object, innerList, innerObject }
    final class Kept { var writeLate: () throws -> Void = {} }

    let kept: Kept
    let held: Held
}

extension LateWriting: Encodable {
    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Sprig.Name.self)
        try object.encode(Keeping(kept: kept, held: held), forKey: Sprig.Name("a"))
        try object.encode(Meddling(kept: kept), forKey: Sprig.Name("b"))
        try object.encode([1, 2], forKey: Sprig.Name("c"))
    }

    private struct Keeping: Encodable {
        let kept: Kept
        let held: Held

        func encode(to encoder: any Encoder) throws {
            switch held {
            case .list: try keep(encoder.unkeyedContainer())
            case .object: try keep(encoder.container(keyedBy: Sprig.Name.self))
            case .innerList:
                var outer = encoder.unkeyedContainer()
                try keep(outer.nestedUnkeyedContainer())
            case .innerObject:
                var outer = encoder.container(keyedBy: Sprig.Name.self)
                try keep(outer.nestedContainer(keyedBy: Sprig.Name.self, forKey: Sprig.Name("inner")))
            }
        }

        private func keep(_ list: any UnkeyedEncodingContainer) throws {
            var list = list
            try list.encode("kept")
            kept.writeLate = { try list.encode("late") }
        }

        private func keep(_ object: KeyedEncodingContainer<Sprig.Name>) throws {
            var object = object
            try object.encode("kept", forKey: Sprig.Name("early"))
            kept.writeLate = { try object.encode("late", forKey: Sprig.Name("late")) }
        }
    }

    private struct Meddling: Encodable {
        let kept: Kept

        func encode(to encoder: any Encoder) throws {
            var list = encoder.unkeyedContainer()
            try list.encode("own")
            try kept.writeLate()
            try list.encode(["inner"])
        }
    }
}

/// What a type may do wrong when it encodes itself.
enum Offence {
    case twoContainers, containerAfterValue, twoValues, neverEnding, nestedForEver, insideItself, noNumber
}

/// Does it. (The offence itself is not `Encodable`: the testing library would encode it.)
private struct Offender: Encodable {
    let offence: Offence

    func encode(to encoder: any Encoder) throws {
        switch offence {
        case .twoContainers:
            var list = encoder.unkeyedContainer()
            try list.encode(1)
            var object = encoder.container(keyedBy: Sprig.Name.self)
            try object.encode(1, forKey: Sprig.Name("a"))
        case .containerAfterValue:
            var value = encoder.singleValueContainer()
            try value.encode(1)
            var list = encoder.unkeyedContainer()
            try list.encode(1)
        case .twoValues:
            var value = encoder.singleValueContainer()
            try value.encode(1)
            try value.encode(2)
        case .neverEnding:
            var object = encoder.container(keyedBy: Sprig.Name.self)
            try object.encode(self, forKey: Sprig.Name("again"))
        case .nestedForEver:
            var list = encoder.unkeyedContainer()
            for _ in 0..<100_000 { list = list.nestedUnkeyedContainer() }
        case .insideItself:
            var value = encoder.singleValueContainer()
            try value.encode(self)
        case .noNumber:
            var value = encoder.singleValueContainer()
            try value.encode(Decimal.nan)
        }
    }
}
