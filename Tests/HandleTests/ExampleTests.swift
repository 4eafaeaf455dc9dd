import Foundation
import Testing

@testable import Handle

/// The complete states in Examples/handle: what the app itself saves.
@Suite("The states of Examples/handle")
struct ExampleTests {
    static let names = ["1-phone-half-way", "2-tablet-carries-on", "3-phone-plays-on", "3-tablet-wins"]

    @Test("a state is read, and written with the same keys and values", arguments: names)
    func roundTrip(name: String) throws {
        let state = try Self.state(name)
        let game = try Self.game(name)
        let written = try JSONSerialization.jsonObject(with: Self.encoder.encode(game))
        let read = try JSONSerialization.jsonObject(with: state)
        #expect(try #require(written as? NSDictionary) == #require(read as? NSDictionary))
        #expect(game.gameNumber == 273)
        #expect(game.answer == AnswerWords.answer(forDay: 273))
    }

    @Test("a state survives the hand mapping, both ways", arguments: names)
    func handMapping(name: String) throws {
        let game = try Self.game(name)
        let object = try game.persistedObject()
        #expect(object.didPlayerLose == false)
        var back = try Game(persistedObject: object)
        #expect(back.didPlayerLose == false)
        back.didPlayerLose = nil
        #expect(back == game)
    }

    @Test("playing on from one state gives the next one")
    func playing() throws {
        var game = try Self.game("1-phone-half-way")
        #expect(game.typed == [.mieum, .a])
        try game.type("음")
        _ = game.submit()
        expectSame(game, try Self.game("2-tablet-carries-on"))

        var phone = game
        try phone.type("보람")
        _ = phone.submit()
        expectSame(phone, try Self.game("3-phone-plays-on"))

        try game.type("사랑")
        _ = game.submit()
        try game.type("사람")
        _ = game.submit()
        expectSame(game, try Self.game("3-tablet-wins"))
        #expect(game.result == "⬛⬛🟩⬛🟩\n⬛🟩🟨⬛🟨\n⬛🟩⬛⬛🟩\n🟩🟩🟩🟩⬛\n🟩🟩🟩🟩🟩")
    }

    private func expectSame(_ one: Game, _ other: Game) {
        var one = one
        one.timestamp = other.timestamp
        #expect(one == other)
    }

    static func game(_ name: String) throws -> Game { try decoder.decode(Game.self, from: state(name)) }

    static func state(_ name: String) throws -> Data {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try Data(contentsOf: root.appending(path: "Examples/handle/\(name).json"))
    }

    private static var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            try style.parse(decoder.singleValueContainer().decode(String.self))
        }
        return decoder
    }

    private static var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .custom { date, encoder in
            let micros = Int64((date.timeIntervalSince1970 * 1e6).rounded())
            let whole = Date(timeIntervalSince1970: Double(micros / 1_000_000))
            let fraction = String(micros % 1_000_000 + 1_000_000).dropFirst()
            var container = encoder.singleValueContainer()
            try container.encode(whole.formatted(.iso8601).dropLast() + ".\(fraction)Z")
        }
        return encoder
    }

    private static let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
}
