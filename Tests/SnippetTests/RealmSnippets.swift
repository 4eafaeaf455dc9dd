import Foundation
import IeumClient
import Testing

// snippet
struct Match: Persistable {
    static let collection = "my.match"

    var id = UUID().uuidString
    var timestamp = Date()
    var score = 0
    var words: [String] = []
    var board = Board()

    static var defaults: Match? { Match() }
}

struct Board: Codable, Sendable {
    var rows: [[String]] = []
}
// end

/// What ComingFromRealmSwift.md shows, run.
@Suite("coming from RealmSwift, as the page shows it")
struct RealmSnippets {
    @Test("writing and reading")
    func writing() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ieum-snippets-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let url = folder.appendingPathComponent("games.sqlite")

        // snippet
        let store = try GameStore(at: url)
        var match = Match()
        match.score = 120
        try store.save(match)
        // end
        let id = match.id

        // snippet
        try store.write { transaction in
            guard var match = try transaction.object(Match.self, id: id) else { return }
            match.score += 10
            try transaction.save(match)
        }
        // end
        #expect(try store.object(Match.self, id: id)?.score == 130)

        // snippet
        let good = try store.objects(Match.self, where: { $0.score > 100 }, sortedBy: .descending(\.score))
        // end
        #expect(good.map(\.score) == [130])
        #expect(try store.count(Match.self) == 1)
        #expect(try GameStore.inMemory().latest(Match.self) == nil)
        try store.delete(match)
        #expect(try store.objects(Match.self).isEmpty)
    }

    @Test("a change of rows, for a table view")
    func table() async throws {
        let store = try GameStore.inMemory()
        final class Table: Sendable {
            let (calls, heard) = AsyncStream.makeStream(of: String.self)
            func reloadData() { heard.yield("reload") }
            func deleteRows(_ rows: [Int]) { heard.yield("delete \(rows)") }
            func insertRows(_ rows: [Int]) { heard.yield("insert \(rows)") }
            func reloadRows(_ rows: [Int]) { heard.yield("rows \(rows)") }
        }
        let table = Table()
        // snippet
        let token = store.observe(Match.self, sortedBy: .descending(\.score), on: .main) { change in
            switch change {
            case .initial:
                table.reloadData()
            case .update(_, let deletions, let insertions, let modifications, _):
                table.deleteRows(deletions)
                table.insertRows(insertions)
                table.reloadRows(modifications)
            case .error(let error):
                print("the file is gone, or the disk is full: \(error)")
            }
        }
        // end
        var calls = table.calls.makeAsyncIterator()
        #expect(await calls.next() == "reload")
        try store.save(Match(score: 1))
        #expect(await calls.next() == "delete []")
        #expect(await calls.next() == "insert [0]")
        token.invalidate()
    }
}
