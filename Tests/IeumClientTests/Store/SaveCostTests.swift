import CSQLite
import Foundation
import TestSupport
import Testing

@testable import IeumClient

@Suite("What a save costs", .serialized)
struct SaveCostTests {
    /// The benchmark proper is in Benchmarks; this one only sees to it that nobody doubles the cost unnoticed.
    @Test("a save is not much dearer than the plain upsert of the same bytes, as durable")
    func save() throws {
        let folder = try TestFolder("store-cost")
        let store = try GameStore(at: URL(fileURLWithPath: folder.path + "/games.sqlite"))
        let plain = try SQLiteConnection(
            path: folder.path + "/plain.sqlite", flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
        try plain.script(
            """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
            CREATE TABLE games (collection TEXT, id TEXT, state BLOB, PRIMARY KEY (collection, id))
            """)
        var game = WordGame(answer: "사람")
        var ours: [Duration] = []
        var theirs: [Duration] = []
        for number in 0..<300 {
            game.currentColumn = number
            game.timestamp = Date(timeIntervalSinceReferenceDate: Double(number))
            let bytes = try StateCoder.encode(game)
            ours.append(try ContinuousClock().measure { try store.save(game) })
            theirs.append(
                try ContinuousClock().measure {
                    try plain.run(
                        """
                        INSERT INTO games (collection, id, state) VALUES (?, ?, ?)
                        ON CONFLICT (collection, id) DO UPDATE SET state = excluded.state
                        """, .text("handle.game"), .text(game.id), .bytes(bytes))
                })
        }
        let encoding = try ContinuousClock().measure { for _ in 0..<100 { _ = try StateCoder.encode(game) } } / 100
        let (our, their) = (ours.sorted()[150], theirs.sorted()[150])
        print("save: median \(our), plain upsert \(their), ratio \(our / their), of it encoding \(encoding)")
        #expect(our / their < 4)
    }
}
