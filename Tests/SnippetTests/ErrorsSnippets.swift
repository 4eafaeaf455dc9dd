import Foundation
import IeumClient
import Testing

/// What Errors.md shows, run.
@Suite("errors, as the page shows them")
struct ErrorsSnippets {
    struct Text: Persistable {
        static let collection = "my.game"
        var id: String
        var timestamp = Date()
        var score: String
    }

    @Test("a state that cannot be read is an error, never no game")
    func unreadable() throws {
        let store = try GameStore.inMemory()
        try store.save(Text(id: "1", score: "many"))
        var isShown = false
        func showStart() { Issue.record("a state that cannot be read is not 'no game'") }
        func show(_ game: Game) { Issue.record("the state cannot be read") }
        func tellPlayer(_ text: String) { isShown = text.contains("update") }
        // snippet
        do {
            if let game = try store.latest(Game.self) { show(game) } else { showStart() }
        } catch let error as StoreError {
            switch error.kind {
            case .newerSchema, .unknownValue, .typeMismatch, .missingKey, .invalidState:
                tellPlayer("This game needs an update of the app; it is kept.")
            case .diskFull:
                tellPlayer("The disk is full.")
            default:
                tellPlayer("The games cannot be read: \(error)")
            }
        }
        // end
        #expect(isShown)

        // snippet
        let (games, unreadable) = try store.readableObjects(Game.self)
        for error in unreadable { print(error.place?.id ?? "", error.place?.property ?? "", error) }
        // end
        #expect(games.isEmpty)
        #expect(unreadable.first?.place?.property == "score")
        let page = try PageTests.text(of: "Sources/IeumClient/IeumClient.docc/Errors.md")
        let message = unreadable.first?.message ?? ""
        let isOnPage = page.contains("\n\(message)\n")
        #expect(isOnPage, "the page must show: \(message)")
    }

    @Test("a damaged file is set aside")
    func damaged() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ieum-snippets-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let url = folder.appendingPathComponent("games.sqlite")
        do { try GameStore(at: url).save(Game(score: 1)) }
        for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: url.path + suffix) }
        var bytes = try Data(contentsOf: url)
        bytes.replaceSubrange(4096..., with: repeatElement(0xFF, count: bytes.count - 4096))
        try bytes.write(to: url)
        // snippet
        let store = try GameStore(at: url)
        if let copy = store.damagedCopy { print("the games file was damaged; what is left of it is \(copy.path)") }
        // end
        #expect(store.damagedCopy != nil)
    }
}
