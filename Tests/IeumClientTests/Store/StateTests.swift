import Foundation
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("States")
struct StateTests {
    private let store: GameStore

    init() throws {
        store = try .inMemory()
    }

    private struct Numbers: Persistable, Equatable {
        static let collection = "numbers"
        var id = "n"
        var timestamp = Date(timeIntervalSinceReferenceDate: 780_000_000.123456)
        var large = Int64.max - 1
        var odd: Int64 = 9_007_199_254_740_993
        var unsigned = UInt64.max
        var limits = [Double.infinity, -.infinity, 0.1, -0.0, .greatestFiniteMagnitude, .leastNonzeroMagnitude]
        var data = Data([0, 255, 254])
        var dates = [Date.distantPast, .distantFuture, Date(timeIntervalSince1970: -1.5)]
        var note: String?
        var text = "\u{1F600} / \" \\ \u{2028} e\u{301}"
    }

    @Test("numbers, dates, data and texts come back as they were")
    func values() throws {
        let value = Numbers()
        try store.save(value)
        #expect(try store.latest(Numbers.self) == value)
        let text = String(decoding: try StateCoder.encode(value), as: UTF8.self)
        #expect(text.contains(#""timestamp":"2025-09-19T18:40:00.123456Z""#))
        #expect(text.contains(#""large":9223372036854775806"#))
        #expect(text.contains(#""data":"AP/+""#))
        #expect(text.contains(#"["Infinity","-Infinity","#))
    }

    @Test("a NUL in a text is refused before anything is stored")
    func nul() throws {
        let error = #expect(throws: StoreError.self) { try store.save(Numbers(text: "a\0b")) }
        #expect(error?.kind == .notEncodable)
        let date = #expect(throws: StoreError.self) {
            try store.save(Numbers(dates: [Date(timeIntervalSince1970: .nan)]))
        }
        #expect(date?.place?.property == "dates[0]")
        #expect(try store.count(Numbers.self) == 0)
    }

    @Test(
        "dates of other hands are read",
        arguments: [
            ("2025-09-30T19:02:11Z", 1_759_258_931_000_000), ("2025-09-30T19:02:11.48Z", 1_759_258_931_480_000),
            ("2025-09-30T19:02:11.4800004Z", 1_759_258_931_480_000),
            ("2025-10-01T04:02:11+09:00", 1_759_258_931_000_000),
        ] as [(String, Int64)])
    func dates(_ text: String, _ micros: Int64) {
        #expect(DateText.microseconds(text) == micros)
    }

    @Test("random dates come back to the microsecond")
    func randomDates() {
        var random = SeededRandom(for: "dates")
        for _ in 0..<2_000 {
            let micros = Int64.random(in: -62_167_219_200_000_000...4_000_000_000_000_000, using: &random)
            let date = DateText.date(micros)
            let text = DateText.text(date)
            #expect(text.flatMap { DateText.microseconds($0) } == DateText.microseconds(date), "\(micros)")
            if abs(micros) < 4_000_000_000_000_000 { #expect(DateText.microseconds(date) == micros) }
        }
        for text in [
            "", "2025", "2025-13-01T00:00:00Z", "2025-02-29T00:00:00Z", "2025-01-01T00:00:00.Z", "-001-01-01T00:00:00Z",
        ] {
            #expect(DateText.microseconds(text) == nil)
        }
    }

    @Test("what a newer app wrote goes through an older one unharmed, nested and in arrays, too")
    func unknownKeys() throws {
        var game = WordGame(id: "g", timestamp: Date(timeIntervalSinceReferenceDate: 0), answer: "사람")
        var text = String(decoding: try StateCoder.encode(game), as: UTF8.self)
        text = text.replacingOccurrences(of: #""keyBoard":{"#, with: #""keyBoard":{"skin":1.50,"#)
        text = text.replacingOccurrences(of: #"{"letter":"ㅎ","#, with: #"{"letter":"ㅎ","glow":[1, 2],"#)
        text.removeLast()
        text += #","hints":{"left":12345678901234567890123}}"#
        try put(text, "g")
        #expect(try store.latest(WordGame.self) == game)
        // Unchanged: nothing is written.
        try store.save(game)
        #expect(try stored("g") == text)
        // Changed at the top, in the keyboard, and again.
        for row in 1...3 {
            game.currentRow = row
            game.keyBoard.keys[0].status = row % 2 == 0 ? .absent : .right
            game.keyBoard.keys.swapAt(1, 2)
            try store.save(game)
            let now = try stored("g")
            for kept in [#""hints":{"left":12345678901234567890123}"#, #""skin":1.50"#, #""glow":[1, 2]"#] {
                let isKept = now.contains(kept)
                #expect(isKept, "\(kept) after \(row)")
            }
            #expect(try store.latest(WordGame.self) == game)
        }
    }

    @Test("an optional that becomes nil does not come back")
    func nils() throws {
        var value = Numbers(note: "x")
        try store.save(value)
        value.note = nil
        try store.save(value)
        #expect(try store.latest(Numbers.self) == value)
        try put(#"{"id":"m","timestamp":"2025-01-01T00:00:00Z","note":"x","later":null}"#, "m", Small.collection)
        try store.save(Small(id: "m", timestamp: .distantPast))
        #expect(
            try stored("m", Small.collection) == #"{"id":"m","timestamp":"0000-12-30T00:00:00.000000Z","later":null}"#)
    }

    private struct Small: Persistable, Equatable {
        static let collection = "small"
        var id = "s"
        var timestamp = Date(timeIntervalSinceReferenceDate: 0)
        var note: String?
    }

    private struct Old: Persistable {
        static let collection = "grown"
        var id = "x"
        var timestamp = Date(timeIntervalSinceReferenceDate: 0)
        var inner = Inner()
        var list = [Item(name: "a"), Item(name: "b")]
        var table = ["k": 1]
        struct Inner: Codable { var a = 1 }
        struct Item: Codable { var name: String }
    }

    private struct Grown: Persistable, Equatable {
        static let collection = "grown"
        var id: String
        var timestamp: Date
        var inner: Inner
        var list: [Item]
        var table: [String: Int]
        var lives = 3
        var tags = ["new"]
        var maybe: Int? = 7
        struct Inner: Codable, Equatable { var a: Int; var b: Data }
        struct Item: Codable, Equatable, DeclaresDefaults {
            var name: String
            var count = 5
            static var defaults: Item? { Item(name: "?") }
        }
        static var defaults: Grown? {
            Grown(
                id: "", timestamp: .distantPast, inner: Inner(a: 9, b: Data([1])), list: [], table: ["not": 9])
        }
    }

    @Test("a missing key takes its declared default, nested and in elements of lists; what is there stays")
    func defaults() throws {
        try store.save(Old())
        let grown = try #require(try store.latest(Grown.self))
        #expect(grown.inner == Grown.Inner(a: 1, b: Data([1])))
        #expect(grown.list == [Grown.Item(name: "a", count: 5), Grown.Item(name: "b", count: 5)])
        #expect(grown.table == ["k": 1])
        #expect(grown.lives == 3 && grown.tags == ["new"] && grown.maybe == nil)
        #expect(grown.timestamp == Old().timestamp)
    }

    @Test(
        "what cannot be read is an error that names it, stays untouched, and is never taken for no game",
        arguments: [
            (#"{"id":"g"}"#, StoreError.Kind.missingKey, "timestamp", nil),
            (#"{"id":"g","timestamp":5,"note":"x"}"#, .typeMismatch, "timestamp", "number"),
            (#"{"id":"g","timestamp":"soon"}"#, .unknownValue, "timestamp", "string"),
            (#"{"id":"g","timestamp":"2025-01-01T00:00:00Z","note":[1]}"#, .typeMismatch, "note", "array"),
            (#"[1]"#, .typeMismatch, "", "array"), (#"{"id":"#, .invalidState, "", nil), ("", .invalidState, "", nil),
            (String(repeating: "[", count: 100_000), .invalidState, "", nil),
        ] as [(String, StoreError.Kind, String, String?)])
    func unreadable(_ text: String, _ kind: StoreError.Kind, _ property: String, _ storedType: String?) throws {
        try put(text, "g", Small.collection)
        try store.save(Small(id: "fine"))
        try store.write { try $0.connection.run("UPDATE games SET timestamp = 9e17 WHERE id = 'g'") }
        let error = try #require(#expect(throws: StoreError.self) { try store.latest(Small.self) })
        #expect(error.kind == kind)
        #expect(error.place?.property == property)
        #expect(error.place?.storedType == storedType)
        #expect(error.description.contains("Small"))
        #expect(throws: StoreError.self) { try store.object(Small.self, id: "g") }
        #expect(throws: StoreError.self) { try store.objects(Small.self) }
        #expect(throws: StoreError.self) { try store.save(Small(id: "g", note: "overwrites")) }
        let (objects, unreadable) = try store.readableObjects(Small.self)
        #expect(objects.map(\.id) == ["fine"])
        #expect(unreadable == [error])
        #expect(try stored("g", Small.collection) == text)
        #expect(try store.delete(Small.self, id: "g"))
        try store.save(Small(id: "g"))
    }

    @Test("an unknown case of an enum is an error that names the property")
    func unknownCase() throws {
        let game = WordGame(id: "g", timestamp: Date(timeIntervalSinceReferenceDate: 0), answer: "")
        let text = String(decoding: try StateCoder.encode(game), as: UTF8.self)
            .replacingOccurrences(of: #""letter":"ㅎ","status":"unused""#, with: #""letter":"ㅎ","status":"sparkling""#)
        try put(text, "g")
        let error = #expect(throws: StoreError.self) { try store.latest(WordGame.self) }
        #expect(error?.kind == .unknownValue)
        #expect(error?.place?.property == "keyBoard.keys[13].status")
        #expect(throws: StoreError.self) { try store.save(game) }
        #expect(try stored("g") == text)
    }

    @Test("a state of a newer app is kept, and not overwritten")
    func newerSchema() throws {
        try put(#"{"id":"g","timestamp":"2025-01-01T00:00:00Z"}"#, "g", Small.collection)
        try store.write { try $0.connection.run("UPDATE games SET schema = 7") }
        #expect(#expect(throws: StoreError.self) { try store.latest(Small.self) }?.kind == .newerSchema)
        #expect(#expect(throws: StoreError.self) { try store.save(Small(id: "g")) }?.kind == .newerSchema)
    }

    @Test("the old pair of types works as before, and keeps what the game has no property for")
    func handMapped() throws {
        let game = OldGame(id: "g", timestamp: Date(timeIntervalSinceReferenceDate: 9), answer: "사람")
        try store.save(game)
        let text = try stored("g", OldGame.collection)
        #expect(text.contains(#""didPlayerLose":false"#))
        try put(
            text.replacingOccurrences(of: #""didPlayerLose":false"#, with: #""didPlayerLose":true"#), "g",
            OldGame.collection)
        var again = try #require(try store.latest(OldGame.self))
        #expect(again.keyBoard == game.keyBoard)
        again.answer = "구름"
        try store.save(again)
        again.answerBoard = [[Key(letter: "ㄱ")]]
        try store.save(again)
        let now = try stored("g", OldGame.collection)
        #expect(now.contains(#""didPlayerLose":true"#) && now.contains("구름"))
        #expect(try store.latest(OldGame.self)?.answerBoard == again.answerBoard)
        // Damaged JSON in a field is an error, and the old code crashed.
        try put(text.replacingOccurrences(of: #""keyBoard":""#, with: #""keyBoard":"AAAA"#), "g", OldGame.collection)
        #expect(throws: StoreError.self) { try store.latest(OldGame.self) }
    }

    @Test("values compare by what they say, numbers to the last digit")
    func comparing() throws {
        func same(_ left: String, _ right: String) throws -> Bool {
            try RawJSON(checking: Array(left.utf8)).isSame(as: RawJSON(checking: Array(right.utf8)))
        }
        #expect(try same(#"{"a":1,"b":[true,null]}"#, #" { "b" : [ true , null ] , "a" : 1.0e0 }"#))
        #expect(try same("1.50e2", "150"))
        #expect(try same("-0.0", "0"))
        #expect(try same(#""\u00e9""#, #""é""#))
        #expect(try !same("9007199254740993", "9007199254740992"))
        #expect(try !same("[1,2]", "[2,1]"))
        #expect(try !same(#"{"a":1}"#, #"{"a":1,"b":2}"#))
        #expect(try !same("1e300", "1e301"))
    }

    @Test("an object's parts come out as they went in")
    func parts() throws {
        var state = try PersistedState(
            json: Array(#"{ "b" : 1.0 , "\"\\" : {"x":[1,"]}"]}, "":"", "n":12345678901234567890 }"#.utf8))
        #expect(state.keys == ["b", "\"\\", "", "n"])
        #expect(state.storedType(of: "\"\\") == "object")
        state.rename("b", to: "c")
        try state.set("n", json: Data("[]".utf8))
        state.remove("")
        #expect(String(decoding: state.json, as: UTF8.self) == #"{"c":1.0,"\"\\":{"x":[1,"]}"]},"n":[]}"#)
        #expect(throws: StoreError.self) { try state.set("n", json: Data("[".utf8)) }
        #expect(throws: StoreError.self) { try PersistedState(json: Data("1".utf8)) }
    }

    private func put(_ text: String, _ id: String, _ collection: String = WordGame.collection) throws {
        let key = try GameKey(collection: collection, id: id)
        try store.write { try $0.save(key, state: Array(text.utf8)) }
    }

    private func stored(_ id: String, _ collection: String = WordGame.collection) throws -> String {
        try store.rows(of: collection).first { $0.id == id }.map { String(decoding: $0.state, as: UTF8.self) } ?? "none"
    }
}
