import CSQLite
import Foundation
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("A store's file")
struct StoreFileTests {
    private let folder: TestFolder
    private let url: URL

    init() throws {
        folder = try TestFolder("store-file")
        url = URL(fileURLWithPath: folder.path + "/games.sqlite")
    }

    private func game(_ id: Int, _ row: Int = 0) -> WordGame {
        WordGame(
            id: "\(id)", timestamp: Date(timeIntervalSinceReferenceDate: Double(id)), answer: "사람", currentRow: row)
    }

    /// A closed store with games in it, as bytes.
    private func filled(_ count: Int) throws -> [UInt8] {
        try GameStore(at: url).save((0..<count).map { game($0) })
        return [UInt8](try Data(contentsOf: url))
    }

    @Test("a file of somebody else's is refused and stays as it is", arguments: ["photo", "database", "text"])
    func foreign(_ kind: String) throws {
        switch kind {
        case "database":
            let other = try SQLiteConnection(path: url.path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
            try other.script("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup')")
        case "photo":
            try Data([0xFF, 0xD8, 0xFF, 0xE0] + (0..<9_000).map { UInt8(truncatingIfNeeded: $0) }).write(to: url)
        default: try Data("x".utf8).write(to: url)
        }
        let before = try Data(contentsOf: url)
        let error = #expect(throws: StoreError.self) { try GameStore(at: url) }
        #expect(error?.kind == .foreign)
        #expect(try Data(contentsOf: url) == before)
    }

    @Test("a file of a newer format is refused and stays as it is")
    func newerFormat() throws {
        _ = try filled(1)
        try SQLiteConnection(path: url.path, flags: SQLITE_OPEN_READWRITE).script("PRAGMA user_version = 9")
        #expect(#expect(throws: StoreError.self) { try GameStore(at: url) }?.kind == .newerFormat)
        #expect(FileManager.default.fileExists(atPath: url.path))
    }

    @Test("a folder that is not there is an error that says so")
    func noFolder() throws {
        let error = #expect(throws: StoreError.self) {
            try GameStore(at: URL(fileURLWithPath: folder.path + "/none/games.sqlite"))
        }
        #expect(error?.kind == .cannotOpen)
        #expect(error?.sqlite?.code == SQLITE_CANTOPEN)
        #expect(error?.message.contains("No such file") == true)
    }

    @Test("damage is met with a fresh store, the file is kept aside, and the app can see that")
    func damaged() throws {
        var bytes = try filled(40)
        for index in 4_096..<16_384 { bytes[index] = 0xA5 }
        try Data(bytes).write(to: url)
        let store = try GameStore(at: url)
        let aside = try #require(store.damagedCopy)
        #expect(aside.lastPathComponent.hasPrefix("games.sqlite.damaged-20"))
        #expect(try Data(contentsOf: aside) == Data(bytes))
        #expect(try store.latest(WordGame.self) == nil)
        #expect(try store.syncPoint().cursor == 0)
        try store.save(game(1))
        #expect(try GameStore(at: url).damagedCopy == nil)
        #expect(try GameStore(at: url).count(WordGame.self) == 1)
    }

    @Test("damage that is met later is an error then, and the next opening sets the file aside")
    func damagedLater() throws {
        _ = try filled(1)
        let store = try GameStore(at: url)
        try store.save(WordGame(id: "big", answer: String(repeating: "x", count: 900_000)))
        try store.save((0..<1_500).map { game($0) })
        try SQLiteConnection(path: url.path, flags: SQLITE_OPEN_READWRITE).script("PRAGMA wal_checkpoint(TRUNCATE)")
        let file = try FileHandle(forUpdating: url)
        let size = try file.seekToEnd()
        #expect(size > UInt64(StoreFile.checkedBytes))
        try file.seek(toOffset: size / 2)
        try file.write(contentsOf: Data(repeating: 0xA5, count: 65_536))
        try file.close()
        // Too large to be looked through whenever it is opened: the damage is not met yet.
        let other = try GameStore(at: url)
        #expect(other.damagedCopy == nil)
        #expect(#expect(throws: StoreError.self) { try other.objects(WordGame.self) }?.kind == .damaged)
        let fresh = try GameStore(at: url)
        #expect(fresh.damagedCopy != nil)
        #expect(try fresh.count(WordGame.self) == 0)
    }

    @Test("a file with random bytes in it, or cut short, gives games, errors or a fresh store, and never traps")
    func randomDamage() throws {
        let bytes = try filled(12)
        var random = SeededRandom(for: "damaged files")
        var fresh = 0
        var errors = 0
        for round in 0..<150 {
            var damaged = bytes
            for _ in 0..<Int.random(in: 1...200, using: &random) {
                // The header and the catalogue's page get their share.
                let limit = Bool.random(using: &random) ? 4_096 : damaged.count
                damaged[Int.random(in: 0..<limit, using: &random)] = UInt8.random(in: .min ... .max, using: &random)
            }
            if round % 5 == 0 { damaged.removeLast(Int.random(in: 0..<damaged.count, using: &random)) }
            let file = URL(fileURLWithPath: "\(folder.path)/random-\(round).sqlite")
            try Data(damaged).write(to: file)
            do {
                let store = try GameStore(at: file)
                if store.damagedCopy != nil { fresh += 1 }
                _ = try store.readableObjects(WordGame.self)
                _ = try store.latest(WordGame.self)
                for id in 0..<3 { try store.save(game(id, round + 1)) }
                _ = try store.delete(WordGame.self, id: "5")
                _ = try store.takeOutgoing(limit: 5, bytes: 1_000)
                _ = try store.heldGames()
                _ = try store.syncPoint()
            } catch is StoreError {
                errors += 1
            }
        }
        print("damaged files: \(fresh) of 150 set aside, \(errors) errors")
        #expect(fresh > 0)
    }

    @Test("a full disk is an error that changes nothing, and with space the next save works")
    func diskFull() throws {
        let store = try GameStore(at: url)
        try store.save(game(1))
        let pages = try store.write { transaction in
            let pages = try transaction.connection.integer("PRAGMA page_count") ?? 0
            try transaction.connection.script("PRAGMA max_page_count = \(pages + 2)")
            return pages
        }
        let big = WordGame(id: "big", answer: String(repeating: "x", count: 100_000))
        let error = #expect(throws: StoreError.self) {
            try store.write { transaction in
                try transaction.save(game(1, 4))
                try transaction.save(big)
            }
        }
        #expect(error?.kind == .diskFull)
        // Going on after it saves nothing either.
        #expect(throws: StoreError.self) {
            try store.write { transaction in
                try? transaction.save(big)
                try? transaction.save(game(1, 5))
                try? transaction.save(game(2))
            }
        }
        #expect(error?.sqlite?.code == SQLITE_FULL)
        #expect(try store.objects(WordGame.self) == [game(1)])
        try store.write { try $0.connection.script("PRAGMA max_page_count = \(pages + 1_000)") }
        try store.save(game(1, 4))
        try store.save(big)
        #expect(try store.count(WordGame.self) == 2)
    }

    @Test("two stores on one file see each other's saves, and neither loses one")
    func twoStores() async throws {
        let stores = [try GameStore(at: url), try GameStore(at: url)]
        let before = try stores[1].foreignChanges()
        try stores[0].save(game(0))
        #expect(try stores[1].foreignChanges() != before)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, store) in stores.enumerated() {
                group.addTask { for id in 1...60 { try store.save(self.game(id * 2 + number)) } }
            }
            try await group.waitForAll()
        }
        #expect(try stores[0].count(WordGame.self) == 121)
        #expect(try Set(stores[1].changes(of: WordGame.collection).map(\.change)) == Set(1...121))
        // What one knows of a state does not outlive the other's save of it.
        try stores[1].save(game(0, 5))
        try stores[0].save(game(0))
        #expect(try stores[1].object(WordGame.self, id: "0") == game(0))
    }

    @Test("a save writes a handful of pages, and one that changes nothing writes none")
    func pages() throws {
        func logged() throws -> Int { try Data(contentsOf: URL(fileURLWithPath: url.path + "-wal")).count }
        let store = try GameStore(at: url)
        for row in 0..<20 {
            let before = try logged()
            try store.save(game(1, row))
            // The row, its three indexes, the counter, and a page that the row spills into.
            #expect(try logged() - before <= 6 * (4_096 + 24))
            let after = try logged()
            try store.save(game(1, row))
            #expect(try logged() == after)
        }
    }

    @Test("a file that is kept by another writer is an error once the wait is over")
    func busy() throws {
        let store = try GameStore(path: url.path, schemaVersion: 0, busyMilliseconds: 1)
        let other = try SQLiteConnection(path: url.path, flags: SQLITE_OPEN_READWRITE)
        try other.run("BEGIN IMMEDIATE")
        #expect(#expect(throws: StoreError.self) { try store.save(game(1)) }?.kind == .busy)
        #expect(try store.count(WordGame.self) == 0)
        try other.run("ROLLBACK")
        try store.save(game(1))
    }
}
