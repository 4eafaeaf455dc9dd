import Foundation
import Synchronization
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("GameStore")
struct GameStoreTests {
    @Test("an id is one game in every normal form, as it is to Swift")
    func normalForms() throws {
        let store = try GameStore.inMemory()
        let (composed, decomposed) = ("\u{AC00}e\u{301}", "\u{1100}\u{1161}\u{E9}")
        try store.save(WordGame(id: decomposed, answer: "1"))
        try store.save(WordGame(id: composed, answer: "2"))
        #expect(try store.count(WordGame.self) == 1)
        for id in [composed, decomposed] { #expect(try store.object(WordGame.self, id: id)?.answer == "2") }
        #expect(try store.rows(of: WordGame.collection).map { Array($0.id.utf8) } == [Array("\u{AC00}\u{E9}".utf8)])
        #expect(try store.delete(WordGame.self, id: decomposed))
        #expect(try store.object(WordGame.self, id: composed) == nil)
    }

    let folder: TestFolder
    let url: URL

    init() throws {
        folder = try TestFolder("store")
        url = URL(fileURLWithPath: folder.path + "/games.sqlite")
    }

    @Test("a game that was saved after each key is there as it was at the next launch")
    func lifecycle() throws {
        var game = WordGame(timestamp: Date(timeIntervalSinceReferenceDate: 7), answer: "사람")
        for (column, letter) in "ㅅㅏㄹㅏㅁ".enumerated() {
            let store = try GameStore(at: url)
            #expect(try store.latest(WordGame.self) == (column == 0 ? nil : game))
            game.answerBoard[0][column].letter = String(letter)
            game.currentColumn = column + 1
            game.timestamp += 1
            try store.save(game)
            #expect(try store.latest(WordGame.self) == game)
        }
        let store = try GameStore(at: url)
        #expect(try store.object(WordGame.self, id: game.id) == game)
        #expect(try store.count(WordGame.self) == 1)
        #expect(store.damagedCopy == nil)
    }

    @Test("every change is found from any earlier one on, whichever games were saved, deleted and sent between")
    func changes() throws {
        let store = try GameStore(at: url)
        var random = SeededRandom(for: "changes")
        var last: [String: Int64] = [:]
        for change in 1...300 {
            // Now one game many times, now many in turn.
            let id = change % 60 < 30 ? "0" : "\(Int.random(in: 0..<40, using: &random))"
            if Int.random(in: 0..<8, using: &random) == 0, last[id] != nil,
                try store.object(WordGame.self, id: id) != nil
            {
                try store.delete(WordGame.self, id: id)
            } else {
                try store.save(
                    WordGame(
                        id: id, timestamp: Date(timeIntervalSinceReferenceDate: Double(change)), answer: "\(change)"))
            }
            if Int.random(in: 0..<5, using: &random) == 0 {
                try store.write { try $0.connection.run("UPDATE games SET unsent = 0 WHERE id = ?", .text(id)) }
            }
            last[id] = Int64(change)
            for since in [0, 1, change / 2, change - 17, change - 16, change - 1, change] where since >= 0 {
                let found = try store.changes(of: WordGame.self, since: Int64(since)).rows.map(\.change).sorted()
                #expect(found == last.values.filter { $0 > since }.sorted(), "after change \(since) of \(change)")
            }
        }
        #expect(try GameStore(at: url).write { try $0.nextChange() } == 301)
    }

    @Test("saves one after another are as if each read the file, whoever writes it between", arguments: 1...4)
    func savesInTurn(seed: UInt64) throws {
        var random = SeededRandom(for: "saves in turn \(seed)")
        let twin = URL(fileURLWithPath: folder.path + "/twin.sqlite")
        let clock = Mutex(Timestamp(clamping: 1_000))
        func open(_ url: URL) throws -> GameStore {
            try GameStore(path: url.path, schemaVersion: 0, clock: { clock.withLock { $0 } })
        }
        // One store that lives on, and one that is opened anew for each step, and so knows nothing.
        let (living, other) = (try open(url), try open(url))
        for step in 1...400 {
            let pause = Int64.random(in: -2...20, using: &random)
            clock.withLock { $0 = $0.advanced(byMicroseconds: pause) }
            let id = Int.random(in: 0..<10, using: &random) == 0 ? "b" : "a"
            let game = WordGame(
                id: id, timestamp: Date(timeIntervalSinceReferenceDate: Double(step / 3)),
                answer: "\(Int.random(in: 0..<3, using: &random))")
            let sql =
                [
                    "UPDATE games SET unsent = 0, stamp = saved + 5 WHERE id = ?1",
                    "UPDATE games SET saved = saved + 50 WHERE id = ?1",
                    "INSERT OR REPLACE INTO meta (key, value) VALUES ('clock_offset', length(?1) + \(step))",
                ].randomElement(using: &random) ?? ""
            let kind = Int.random(in: 0..<12, using: &random)
            func act(_ store: GameStore, beside: GameStore) throws {
                switch kind {
                case 0: try beside.save(game)
                case 1: try store.delete(game)
                case 2: try beside.delete(game)
                case 3: try store.write { try $0.connection.run(sql, .text(id)) }
                case 4: try beside.write { try $0.connection.run(sql, .text(id)) }
                case 5:
                    try store.write { transaction in
                        try transaction.connection.run(sql, .text(id))
                        try transaction.save(game)
                    }
                case 6:
                    struct Refusal: Error {}
                    #expect(throws: Refusal.self) {
                        try store.write { transaction in
                            try transaction.save(game)
                            throw Refusal()
                        }
                    }
                default: try store.save(game)
                }
            }
            try act(living, beside: other)
            let fresh = try open(twin)
            try act(fresh, beside: fresh)
            let rows = try [living, fresh].map { store in
                var rows: [String] = []
                // Past the connection that writes: looking must not make it forget anything.
                try store.read { reader in
                    try reader.connection.rows(
                        "SELECT id, change, span, timestamp, saved, stamp, unsent, state FROM games ORDER BY id"
                    ) { row in
                        rows.append((0..<8).map { row.text($0) ?? "-" }.joined(separator: " "))
                    }
                }
                return rows
            }
            guard rows[0] == rows[1] else {
                Issue.record("step \(step), \(kind) \(sql): \(rows[0]), not \(rows[1])")
                return
            }
        }
    }

    @Test("two types that share a collection keep each other's properties")
    func twoTypes() throws {
        struct Wide: Persistable, Equatable {
            static let collection = "handle.shared"
            var id = "a"
            var timestamp = Date(timeIntervalSinceReferenceDate: 7)
            var coins = 5
            var row = 1
        }
        struct Narrow: Persistable {
            static let collection = "handle.shared"
            var id = "a"
            var timestamp = Date(timeIntervalSinceReferenceDate: 8)
            var row = 2
        }
        let store = try GameStore(at: url)
        try store.save(Wide())
        try store.save(Narrow())
        #expect(
            try store.object(Wide.self, id: "a")
                == Wide(timestamp: Date(timeIntervalSinceReferenceDate: 8), coins: 5, row: 2))
    }

    @Test("saving what is stored already writes nothing and tells nobody")
    func unchanged() throws {
        let store = try GameStore(at: url)
        let game = WordGame(timestamp: Date(timeIntervalSinceReferenceDate: 7), answer: "구름")
        try store.save(game)
        let told = Mutex(0)
        store.whenCommitted { _ in told.withLock { $0 += 1 } }
        let before = try rows(store)
        for store in [store, try GameStore(at: url)] {
            try store.save(game)
            try store.save(try #require(try store.latest(WordGame.self)))
        }
        #expect(try rows(store) == before)
        #expect(told.withLock { $0 } == 0)
        try store.save([WordGame(answer: "a"), WordGame(answer: "b")])
        #expect(told.withLock { $0 } == 1)
    }

    @Test("each save is later than the last and than every stamp seen, whatever the clock says")
    func saved() throws {
        let time = Mutex(Timestamp(clamping: 1_000))
        let store = try GameStore(path: url.path, schemaVersion: 0, clock: { time.withLock { $0 } })
        var game = WordGame(answer: "")
        var last: Int64 = 0
        for now in [1_000, 1_000, 500, 2_000, 1] as [Int64] {
            time.withLock { $0 = Timestamp(clamping: now) }
            game.currentRow += 1
            try store.save(game)
            let saved = try number("saved", store)
            #expect(saved == max(now, last + 1))
            last = saved
        }
        try store.write { transaction in
            try transaction.connection.run("UPDATE games SET stamp = 9000, unsent = 0, device = x'00'")
        }
        game.currentRow += 1
        try store.save(game)
        #expect(try number("saved", store) == 9_001)
        #expect(try number("unsent", store) == 1)

        // Saved by a clock that ran ahead, and acknowledged: the server held it down to its own clock.
        try store.write { transaction in
            try transaction.connection.run("UPDATE games SET saved = 1000000, stamp = 9500, unsent = 0, device = NULL")
        }
        game.currentRow += 1
        try store.save(game)
        #expect(try number("saved", store) == 9_501)
    }

    @Test("a transaction that fails leaves nothing, and one inside another is refused")
    func transactions() throws {
        let store = try GameStore(at: url)
        struct Stop: Error {}
        let game = WordGame(answer: "")
        #expect(throws: Stop.self) {
            try store.write { transaction in
                try transaction.save(game)
                #expect(try transaction.latest(WordGame.self)?.id == game.id)
                #expect(try store.latest(WordGame.self) == nil)
                throw Stop()
            }
        }
        #expect(try store.count(WordGame.self) == 0)
        let error = #expect(throws: StoreError.self) { try store.write { _ in try store.save(game) } }
        #expect(error?.kind == .misuse)
        var escaped: StoreTransaction?
        try store.write { escaped = $0 }
        #expect(throws: StoreError.self) { try escaped?.save(game) }
        try store.save(game)
        #expect(try store.count(WordGame.self) == 1)
    }

    @Test("deleting keeps the row as unsent, and saving again brings the game back")
    func deleting() throws {
        let store = try GameStore(at: url)
        let game = WordGame(timestamp: Date(timeIntervalSinceReferenceDate: 1), answer: "x")
        #expect(try store.delete(game) == false)
        try store.save(game)
        let saved = try number("saved", store)
        #expect(try store.delete(game))
        #expect(try store.delete(game) == false)
        #expect(try store.latest(WordGame.self) == nil)
        #expect(try store.objects(WordGame.self).isEmpty)
        #expect(try number("saved", store) > saved)
        try store.save(game)
        #expect(try store.objects(WordGame.self) == [game])
    }

    @Test("objects come by id, or filtered and sorted as asked")
    func objects() throws {
        let store = try GameStore.inMemory()
        let games = (0..<9).map {
            WordGame(id: "\($0)", timestamp: Date(timeIntervalSinceReferenceDate: 0), answer: "", currentRow: $0 / 2)
        }
        try store.save(games.shuffled())
        #expect(try store.objects(WordGame.self) == games)
        #expect(try store.latest(WordGame.self)?.id == "8")
        let some = try store.objects(
            WordGame.self, where: { $0.currentRow > 1 }, sortedBy: .descending(\.currentRow), .ascending(\.id))
        #expect(some.map(\.id) == ["8", "6", "7", "4", "5"])
    }

    @Test(
        "an id that no server takes is refused with a hint",
        arguments: ["", "a b", "a=b", String(repeating: "x", count: 129)])
    func ids(_ id: String) throws {
        let store = try GameStore.inMemory()
        let error = #expect(throws: StoreError.self) { try store.save(WordGame(id: id, answer: "")) }
        #expect(error?.kind == .invalidID)
        #expect(throws: StoreError.self) { try store.object(WordGame.self, id: id) }
        #expect(try store.count(WordGame.self) == 0)
    }

    @Test("states of a megabyte go in and out", arguments: [100_000, 1_000_000])
    func large(_ count: Int) throws {
        let store = try GameStore(at: url)
        let game = WordGame(
            timestamp: Date(timeIntervalSinceReferenceDate: 1), answer: String(repeating: "ㅎ", count: count / 3))
        try store.save(game)
        #expect(try GameStore(at: url).latest(WordGame.self) == game)
    }

    @Test("the forms for await do the same")
    func background() async throws {
        let store = try GameStore(at: url)
        let game = WordGame(timestamp: Date(timeIntervalSinceReferenceDate: 1), answer: "x")
        try await store.background.save(game)
        #expect(try await store.background.latest(WordGame.self) == game)
        #expect(try await store.background.objects(WordGame.self) == [game])
        #expect(try await store.background.delete(WordGame.self, id: game.id))
        #expect(try await store.background.count(WordGame.self) == 0)
    }

    @Test("many threads that write and read at a time lose nothing")
    func threads() async throws {
        let store = try GameStore(at: url)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for number in 0..<25 {
                        try store.save(WordGame(id: "\(task)-\(number)", answer: ""))
                        _ = try store.latest(WordGame.self)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try store.count(WordGame.self) == 200)
        #expect(try Set(store.changes(of: WordGame.collection).map(\.change)) == Set(1...200))
    }

    @Test("a version rises by one migration, a lower one is refused, and a failed one changes nothing")
    func versions() throws {
        let calls = Mutex<[Int]>([])
        func open(_ version: Int, _ error: (any Error)? = nil) throws {
            _ = try GameStore(
                path: url.path, schemaVersion: version,
                migrate: { transaction, old in
                    calls.withLock { $0.append(old) }
                    try transaction.save(WordGame(id: "\(old)", answer: ""))
                    if let error { throw error }
                })
        }
        try open(1)
        try open(1)
        #expect(throws: CancellationError.self) { try open(4, CancellationError()) }
        #expect(try GameStore(at: url, schemaVersion: 1).count(WordGame.self) == 0)
        try open(4)
        #expect(calls.withLock { $0 } == [1, 1])
        #expect(throws: StoreError.self) { try open(3) }
        #expect(try GameStore(at: url, schemaVersion: 4).count(WordGame.self) == 1)
    }

    private func rows(_ store: GameStore) throws -> [StoredGame] { try store.rows(of: WordGame.collection) }

    private func number(_ column: String, _ store: GameStore) throws -> Int64 {
        try store.write { try $0.connection.integer("SELECT \(column) FROM games") ?? 0 }
    }
}
