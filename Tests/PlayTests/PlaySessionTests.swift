import Foundation
import Handle
import Testing

@testable import Play

/// A session with a store that makes every move at once.
private struct Player {
    var session = PlaySession(Game(day: 273), connection: Connection(.upToDate))
    var lookedUp: [[Jamo]] = []
    var actions: [PlaySession.Action] = []

    mutating func press(_ keys: Keystroke...) {
        for key in keys { perform(session.press(key)) }
    }

    mutating func perform(_ actions: [PlaySession.Action]) {
        self.actions = actions
        for action in actions {
            switch action {
            case .make(let move):
                var game = session.game
                game.make(move)
                session.played(game)
            case .lookUp(let letters): lookedUp.append(letters)
            case .openNext, .settle, .redraw, .suspend, .leave: break
            }
        }
    }

    mutating func type(_ text: String) throws {
        for letter in try Hangul.letters(of: text) { press(.letters([letter])) }
    }
}

@Suite("A session")
struct PlaySessionTests {
    @Test("an answer of the list needs no dictionary, however its letters could be read")
    func listed() throws {
        var player = Player()
        try player.type("구름")
        player.press(.enter)
        #expect(player.lookedUp.isEmpty && player.session.game.currentRow == 1)
    }

    @Test("a guess waits for the dictionary, once; a word is taken, another is taken by the next Enter")
    func lookingUp() throws {
        var player = Player()
        try player.type("창피")
        player.press(.enter, .enter, .enter)
        #expect(player.lookedUp.count == 1 && player.session.game.currentRow == 0)
        player.perform(player.session.answered(.word, for: try Hangul.letters(of: "창피")))
        #expect(player.session.game.currentRow == 1)

        for verdict in [PlaySession.Verdict.noWord, .unknown] {
            let row = player.session.game.currentRow
            try player.type("창핏")
            player.press(.backspace)
            try player.type("ㅣ")
            let guess = player.session.game.typed
            player.press(.enter)
            player.perform(player.session.answered(verdict, for: guess))
            #expect(player.session.notice?.isAlert == true && player.session.game.currentRow == row)
            player.press(.enter)
            #expect(player.session.game.currentRow == row + 1)
        }
    }

    @Test("an answer that comes too late, or twice, or for other letters, does nothing")
    func lateAnswers() throws {
        var player = Player()
        try player.type("창피")
        let guess = player.session.game.typed
        #expect(player.session.answered(.word, for: guess) == [])
        player.press(.enter, .backspace)
        #expect(player.session.answered(.word, for: guess) == [])
        try player.type("ㅣ")
        #expect(player.session.answered(.word, for: guess) == [])
        player.press(.enter)
        #expect(player.session.answered(.word, for: Array(guess.dropLast())) == [])
        // Another device takes a letter back while the dictionary looks.
        var elsewhere = player.session.game
        elsewhere.make(.deleteLast)
        player.session.found(elsewhere)
        #expect(player.session.answered(.word, for: guess) == [])
        player.press(.enter)
        #expect(player.session.notice?.text == "1 letter is missing")
    }

    @Test("the game of the store is shown, whoever changed it; the own save is nobody else's")
    func found() throws {
        var player = Player()
        try player.type("사")
        var stored = player.session.game
        stored.timestamp += 0.000_000_4
        player.session.found(stored)
        #expect(player.session.notice == nil)
        stored.make(.type([.rieul]))
        player.session.found(stored)
        #expect(player.session.game == stored && player.session.notice?.text == "Another device plays along")
        stored.make(.type([.a, .mieum]))
        stored.make(.submit(stored.typed))
        player.session.found(stored)
        #expect(player.session.notice?.text == "Unbelievable: 사람")
        player.press(.letters([.a]), .backspace, .digit(1))
        #expect(player.actions == [])
        player.press(.enter)
        #expect(player.actions == [.openNext])
    }

    @Test("a game that cannot be read takes no letters, and the way out is open")
    func problem() {
        var player = Player()
        player.session.failed("it is of a newer version")
        player.press(.letters([.a]), .backspace, .enter, .digit(2))
        #expect(player.actions == [])
        player.press(.leave)
        #expect(player.actions == [.leave])
        #expect(player.session.canvas(hasColours: true).lines[14].contains("it is of a newer version"))
    }

    @Test("a clash needs a choice only when guesses would be missed")
    func clashes() throws {
        func side(_ guesses: [String], typed: String = "") throws -> Clash.Side {
            var game = Game(day: 273)
            for guess in guesses {
                try game.type(guess)
                _ = game.submit()
            }
            try game.type(typed)
            return Clash.Side(device: "a", time: "20:10", game: game)
        }
        let none = Clash.Side(device: "a", time: "20:10", game: nil)
        #expect(!Clash(shown: try side(["구름"]), other: try side([], typed: "나무")).needsChoice)
        #expect(!Clash(shown: try side(["구름"]), other: try side(["구름"], typed: "나")).needsChoice)
        #expect(Clash(shown: try side(["구름"]), other: try side(["나물"])).needsChoice)
        #expect(Clash(shown: try side(["구름"]), other: try side(["구름", "나물"])).needsChoice)
        #expect(Clash(shown: none, other: try side(["구름"])).needsChoice)
        #expect(!Clash(shown: try side(["구름"]), other: none).needsChoice)
    }

    @Test("the line at the bottom says how the game stands with the server")
    func connection() {
        #expect(
            Connection(.local).line == "Kept on this device. For all: ieum register --server HOST:PORT --device NAME")
        #expect(Connection(.syncing, device: "phone", unsent: 2).line == "phone: syncing; 2 unsent games")
        #expect(
            Connection(.offline, device: "phone", unsent: 1).line == "phone: offline, the game goes on; 1 unsent game")
        var connection = Connection(.connecting, device: "phone")
        connection.take(.offline)
        connection.take(.connecting)
        #expect(connection.state == .offline)
        connection.take(.signedOut)
        #expect(connection.isTroubled && connection.line == "phone: signed out, the game goes on. See ieum status")
    }
}
