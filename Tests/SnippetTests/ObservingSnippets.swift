import Foundation
import IeumClient
import Synchronization
import Testing

/// What Observing.md shows, run.
@Suite("observing, as the page shows it")
struct ObservingSnippets {
    @Test("a callback hears initial first, then exact differences")
    func callback() async throws {
        let store = try GameStore.inMemory()
        let (calls, heard) = AsyncStream.makeStream(of: String.self)
        @Sendable func show(_ games: [Game]) { heard.yield("show \(games.map(\.score))") }
        @Sendable func update(_ games: [Game], remove: [Int], insert: [Int], reload: [Int]) {
            heard.yield("update \(games.map(\.score)) -\(remove) +\(insert) ~\(reload)")
        }
        @Sendable func report(_ error: any Error) { heard.yield("error \(error)") }
        let first = Game(score: 1)
        try store.save(first)

        // snippet
        let token = store.observe(Game.self, sortedBy: .descending(\.score)) { change in
            switch change {
            case .initial(let games):
                show(games)
            case .update(let games, let deletions, let insertions, let modifications, _):
                update(games, remove: deletions, insert: insertions, reload: modifications)
            case .error(let error):
                report(error)
            }
        }
        // end
        var iterator = calls.makeAsyncIterator()
        #expect(await iterator.next() == "show [1]")
        try store.save(Game(score: 2))
        #expect(await iterator.next() == "update [2, 1] -[] +[0] ~[]")
        try store.delete(first)
        #expect(await iterator.next() == "update [2] -[1] +[] ~[]")

        let shown = Game(score: 5)
        // snippet
        try store.save(shown, withoutNotifying: [token])
        // end
        try store.save(Game(score: 3))
        #expect(await iterator.next() == "update [5, 3, 2] -[] +[1] ~[]")

        // snippet
        token.invalidate()
        // end
    }

    @Test("one object, some properties, a sequence")
    func others() async throws {
        let store = try GameStore.inMemory()
        let game = Game(score: 1)
        try store.save(game)
        let (calls, heard) = AsyncStream.makeStream(of: String.self)
        let id = game.id

        // snippet
        let one = store.observe(Game.self, id: id) { change in
            switch change {
            case .initial(let game): heard.yield("score \(game?.score ?? 0)")
            case .update(let game): heard.yield("score \(game.score)")
            case .unreadable(let error): heard.yield("kept, but not readable here: \(error)")
            case .deleted: heard.yield("deleted")
            case .error(let error): heard.yield("the store is gone: \(error)")
            }
        }
        // end
        var iterator = calls.makeAsyncIterator()
        #expect(await iterator.next() == "score 1")
        try store.delete(game)
        #expect(await iterator.next() == "deleted")
        one.invalidate()
        try store.save(game)

        // snippet
        let scores = try store.observe(Game.self, keyPaths: [\.score]) { change in
            heard.yield("\(change.elements?.map(\.score) ?? [])")
        }
        // end
        #expect(await iterator.next() == "[1]")
        scores.invalidate()

        let watching = Task {
            // snippet
            for try await change in store.changes(of: Game.self, where: { $0.score > 0 }) {
                heard.yield("\(change.elements?.count ?? 0) games")
            }
            // end
        }
        #expect(await iterator.next() == "1 games")
        watching.cancel()
        try await watching.value
    }

    @Test("a view's collection and a shared observer follow the store on the main actor")
    @MainActor
    func views() async throws {
        let store = try GameStore.inMemory()
        try store.save(Game(score: 1))
        enum HistoryScreen {}
        let (calls, heard) = AsyncStream.makeStream(of: Int.self)

        // snippet
        let games = store.observed(Game.self, sortedBy: .descending(\.timestamp))
        // end
        func reload() { heard.yield(games.elements.count) }

        @MainActor final class Label {
            var text = ""
        }
        let label = Label()
        // snippet
        let token = store.observe(Game.self, on: MainActor.shared) { change in
            label.text = "\(change.elements?.count ?? 0) games"
        }
        // end

        // snippet
        let shared = store.sharedObserver(of: Game.self)
        shared.bind(HistoryScreen.self) { reload() }
        // end
        for await _ in calls { break }
        let deadline = ContinuousClock.now + .seconds(60)
        while !games.isLoaded, .now < deadline { await Task.yield() }
        #expect(games.elements.map(\.score) == [1])
        #expect(shared.error == nil)
        while label.text.isEmpty, .now < deadline { await Task.yield() }
        #expect(label.text == "1 games")
        token.invalidate()
        // snippet
        shared.unbind(HistoryScreen.self)
        // end
    }
}
