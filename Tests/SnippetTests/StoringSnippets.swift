// snippet
import Foundation
import IeumClient

struct Game: Persistable {
    static let collection = "my.game"

    var id = UUID().uuidString
    var timestamp = Date()
    var score = 0
    var words: [String] = []

    static var defaults: Game? { Game() }
}
// end
import Testing

/// What Storing.md shows, run.
@Suite("storing a struct, as the page shows it")
struct StoringSnippets {
    @Test("open, save, find again, delete")
    func basics() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ieum-snippets-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }

        // snippet
        let url = folder.appendingPathComponent("games.sqlite")
        let store = try GameStore(at: url)
        // end

        // snippet
        var game = try store.latest(Game.self) ?? Game()
        game.score += 10
        game.timestamp = Date()
        try store.save(game)
        // end
        let id = game.id

        // snippet
        let one = try store.object(Game.self, id: id)
        let best = try store.objects(Game.self, where: { $0.score > 0 }, sortedBy: .descending(\.score))
        let count = try store.count(Game.self)
        // end
        // Not the games as a whole: a `Date()` is finer than the microseconds that are stored, as the page says.
        #expect(one?.id == id && one?.score == 10)
        #expect(best.map(\.id) == [id])
        #expect(count == 1)

        let other = Game(score: 3)
        // snippet
        try store.write { transaction in
            try transaction.save(other)
            try transaction.delete(Game.self, id: game.id)
        }
        // end
        #expect(try store.objects(Game.self).map(\.id) == [other.id])

        // snippet
        try store.delete(other)
        // end
        #expect(try store.latest(Game.self) == nil)
    }

    @Test("the asynchronous form")
    func background() async throws {
        let store = try GameStore.inMemory()
        let game = Game(timestamp: Date(timeIntervalSince1970: 0), score: 1)
        let other = Game(timestamp: Date(timeIntervalSince1970: -1), score: 2)
        // snippet
        try await store.background.save(game)
        try await store.background.save([game, other])
        let latest = try await store.background.latest(Game.self)
        let best = try await store.background.objects(Game.self, sortedBy: .descending(\.score))
        // end
        #expect(latest == game)
        #expect(best == [other, game])
    }

    @Test("a property that is added takes its default, and keys of a newer app survive an older one")
    func evolution() throws {
        // snippet
        struct Player: Persistable {
            static let collection = "my.player"

            var id = "me"
            var timestamp = Date()
            var name = ""
            var hearts = 3  // added in version 2 of the app: this line is the whole change

            static var defaults: Player? { Player() }
        }
        // end
        struct FirstPlayer: Persistable {
            static let collection = "my.player"
            var id = "me"
            var timestamp = Date()
            var name = ""
        }
        let store = try GameStore.inMemory()
        try store.save(FirstPlayer(name: "ㅎㄷ"))
        var player = try #require(try store.object(Player.self, id: "me"))
        #expect(player.hearts == 3)
        player.hearts = 1
        try store.save(player)
        var old = try #require(try store.object(FirstPlayer.self, id: "me"))
        old.name = "한들"
        try store.save(old)
        #expect(try store.object(Player.self, id: "me")?.hearts == 1)
        #expect(try store.object(Player.self, id: "me")?.name == "한들")
    }

    @Test("the encodings that the page states")
    func encodings() throws {
        // snippet
        struct Numbers: Persistable {
            static let collection = "my.numbers"

            var id = "numbers"
            var timestamp = Date(timeIntervalSince1970: 1_759_258_931.48)
            var big = Int64.max
            var ratio = Double.nan
            var limit = Double.infinity
            var bytes = Data([1, 2, 3])
            var nothing: String?
        }
        let store = try GameStore.inMemory()
        try store.save(Numbers())
        let numbers = try store.object(Numbers.self, id: "numbers")
        // end
        #expect(numbers?.big == .max)
        #expect(numbers?.ratio.isNaN == true)
        #expect(numbers?.limit == .infinity)
        #expect(numbers?.bytes == Data([1, 2, 3]))
        let state = try #require(try store.rows(of: "my.numbers").first?.state)
        let stored = String(decoding: state, as: UTF8.self)
        let page = try PageTests.text(of: "Sources/IeumClient/IeumClient.docc/StoringAStruct.md")
        let isShown = page.contains("\n\(stored)\n")
        #expect(isShown, "the page must show \(stored)")
    }

    @Test("a type that maps itself by hand")
    func handMapping() throws {
        // snippet
        struct PersistedGame: PersistedRecord {
            var id = ""
            var timestamp = Date()
            var keyBoard = Data()
            var didPlayerLose = false  // Match has no such property; what is stored there is kept
            static var defaults: PersistedGame? { PersistedGame() }
        }

        struct Match: Persistable {
            static let collection = "my.match"
            var id = UUID().uuidString
            var timestamp = Date()
            var keys: [String] = []

            init(keys: [String]) { self.keys = keys }

            init(persistedObject: PersistedGame) throws {
                id = persistedObject.id
                timestamp = persistedObject.timestamp
                keys = try JSONDecoder().decode([String].self, from: persistedObject.keyBoard)
            }

            func persistedObject() throws -> PersistedGame {
                PersistedGame(id: id, timestamp: timestamp, keyBoard: try JSONEncoder().encode(keys))
            }
        }
        // end
        let store = try GameStore.inMemory()
        let match = Match(keys: ["ㄱ", "ㄴ"])
        try store.save(match)
        #expect(try store.latest(Match.self)?.keys == ["ㄱ", "ㄴ"])
    }
}

extension Game: Equatable {}
