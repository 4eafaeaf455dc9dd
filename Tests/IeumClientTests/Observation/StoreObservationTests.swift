import Foundation
import Observation
import Synchronization
import TestSupport
import Testing
import Wire

@testable import IeumClient

/// A value to save and observe.
struct Score: Persistable, Equatable {
    static let collection = "score"
    var id: String
    var timestamp = Date(timeIntervalSince1970: 1_000)
    var points = 0
    var note = ""
    var board = Board()
    var best: Int?
    var watched = 0 { didSet {} }
    var isGood: Bool { points > 10 }
    static var defaults: Score? { Score(id: "") }

    struct Board: Codable, Equatable, Sendable {
        var rows: [String] = []
    }

    init(id: String, points: Int = 0, note: String = "") {
        (self.id, self.points, self.note) = (id, points, note)
    }
}

@Suite("Observing a store", .timeLimit(.minutes(10)))
struct StoreObservationTests {
    let place: StorePlace
    let store: GameStore

    init() throws {
        place = try StorePlace()
        store = try GameStore(at: place.url)
    }

    private typealias Log = GameLog<CollectionChange<Score>>

    @Test("tells saves, deletions and moves exactly, in the order asked for")
    func updates() async throws {
        let log = Log()
        try store.save([Score(id: "a", points: 1), Score(id: "b", points: 2)])
        let token = store.observe(
            Score.self, where: { $0.points < 100 }, sortedBy: .descending(\.points)
        ) { log.receive($0) }
        await log.wait(for: 1)
        guard case .initial(let scores)? = log.calls.first else {
            Issue.record("not initial: \(log.calls)")
            return
        }
        #expect(scores.map(\.id) == ["b", "a"])
        try store.write { transaction in
            try transaction.save(Score(id: "c", points: 3))
            try transaction.save(Score(id: "a", points: 5))
            try transaction.save(Score(id: "far", points: 100))
            try transaction.save(Score(id: "b", points: 2, note: "changed"))
        }
        await log.wait(for: 2)
        guard case .update(let scores, [1], [0, 1], [0], [2])? = log.calls.last else {
            Issue.record("other changes: \(log.calls)")
            return
        }
        #expect(scores.map(\.id) == ["a", "c", "b"])
        try store.delete(Score.self, id: "c")
        await log.wait(for: 3)
        guard case .update(_, [1], [], [], [])? = log.calls.last else {
            Issue.record("other changes: \(log.calls)")
            return
        }
        token.invalidate()
    }

    @Test("is not told of a save of an unchanged value, of another type, or of a rolled back write")
    func nothing() async throws {
        let log = Log()
        try store.save(Score(id: "a", points: 1))
        let token = store.observe(Score.self, log.receive)
        await log.wait(for: 1)
        try store.save(Score(id: "a", points: 1))
        try store.save(Pet(id: "a"))
        #expect(throws: Refusal.self) {
            try store.write { transaction in
                try transaction.save(Score(id: "b"))
                throw Refusal()
            }
        }
        try store.save(Score(id: "c"))
        await log.wait(for: 2)
        #expect(log.last()?.map(\.id) == ["a", "c"])
        #expect(log.calls.count == 2)
        token.invalidate()
    }

    @Test("may be begun inside a write; writes, reads and observes inside its callback")
    func reentry() async throws {
        for store in [store, try GameStore.inMemory()] {
            let log = Log(), inner = Log()
            let inside = Mutex<ObservationToken?>(nil)
            let failures = Mutex<[any Error]>([])
            let token = try store.write { transaction in
                try transaction.save(Score(id: "a"))
                let token = store.observe(Score.self) { change in
                    if case .initial = change {
                        do {
                            try store.save(Score(id: "b"))
                            _ = try store.objects(Score.self)
                        } catch {
                            failures.withLock { $0.append(error) }
                        }
                        let token = store.observe(Score.self, inner.receive)
                        inside.withLock { $0 = token }
                    }
                    log.receive(change)
                }
                #expect(log.calls.isEmpty)
                try transaction.save(Score(id: "c"))
                return token
            }
            await log.wait { $0.last?.elements?.map(\.id) == ["a", "b", "c"] }
            await inner.wait { $0.last?.elements?.count == 3 }
            #expect(failures.withLock { $0.isEmpty })
            // Initial is what is committed when it is read: before the write, or after it, never half of it.
            #expect([[], ["a", "c"], ["a", "b", "c"]].contains(log.calls.first?.elements?.map(\.id)))
            guard case .initial? = log.calls.first else {
                Issue.record("not initial: \(log.calls)")
                return
            }
            token.invalidate()
        }
    }

    @Test("gives one initial, first, to each of 10,000 observers under writes, and no row is lost or doubled")
    func crowd() async throws {
        let logs = (0..<10_000).map { _ in Log() }
        let writer = Task.detached { [store] in
            for round in 0..<100 { try store.save(Score(id: String(round % 10), points: round)) }
        }
        let tokens = logs.map { store.observe(Score.self, $0.receive) }
        try await writer.value
        try store.save(Score(id: "end"))
        for log in logs { await log.wait { $0.last?.elements?.last?.id == "end" } }
        let expected = try store.objects(Score.self)
        let wrong = logs.filter { log in
            let initials = log.calls.indices.filter { if case .initial = log.calls[$0] { true } else { false } }
            return initials != [0] || log.last() != expected
        }
        #expect(wrong.isEmpty)
        for token in tokens { token.invalidate() }
    }

    @Test("sees what another store on the file saved, which is what another process is")
    func foreign() async throws {
        let log = Log()
        let token = store.observe(Score.self, log.receive)
        await log.wait(for: 1)
        let other = try GameStore(at: place.url)
        try other.save(Score(id: "foreign", points: 4))
        await log.wait(for: 2)
        guard case .update(let scores, [], [0], [], [])? = log.calls.last else {
            Issue.record("other changes: \(log.calls)")
            return
        }
        #expect(scores == [Score(id: "foreign", points: 4)])
        token.invalidate()
    }

    @Test("sees what another process saves, the last of it for sure, numbers only rising")
    func process() async throws {
        struct Count: Persistable {
            static let collection = "count"
            var id: String
            var timestamp: Date
            var number: Int
        }
        let log = GameLog<CollectionChange<Count>>()
        let token = store.observe(Count.self, log.receive)
        await log.wait(for: 1)
        let process = Process()
        process.executableURL = try RunningProgram.program("store-probe")
        process.arguments = [place.url.path, "x", "50"]
        process.standardOutput = Pipe()
        try process.run()
        await log.wait { $0.last?.elements?.first?.number == 50 }
        let numbers = log.calls.compactMap { $0.elements?.first?.number }
        #expect(numbers == numbers.sorted() && numbers.count == Set(numbers).count)
        process.waitUntilExit()
        token.invalidate()
    }

    @Test("sees a page of 10,000 synced games in one call, with deletions")
    func synced() async throws {
        let log = Log()
        _ = try store.meet(
            SignIn(player: PlayerID(UUID()), device: DeviceID(UUID()), revision: 0), epoch: UUID(),
            clockOffset: 0, offersRefused: false)
        let token = store.observe(Score.self, log.receive)
        await log.wait(for: 1)
        func page(_ range: ClosedRange<Int64>, isDeleted: Bool = false) throws -> ChangePage {
            let games = try range.map { revision in
                let id = String((revision - 1) % 10_000)
                return GameVersion(
                    game: try GameKey(collection: "score", id: id),
                    header: GameHeader(
                        revision: revision, saved: Timestamp(clamping: revision), stamp: Timestamp(clamping: revision),
                        device: DeviceID(UUID()), schema: 0),
                    state: isDeleted ? nil : try StateCoder.encode(Score(id: id, points: 1)))
            }
            return ChangePage(games: games, cursor: range.upperBound, hasMore: false)
        }
        _ = try store.apply(page(1...10_000), since: 0)
        await log.wait { $0.last?.elements?.count == 10_000 }
        #expect(log.calls.count == 2)
        _ = try store.apply(page(10_001...10_100, isDeleted: true), since: 10_000)
        await log.wait(for: 3)
        #expect(log.last()?.count == 9_900)
        token.invalidate()
    }

    @Test("leaves out what this app cannot read, and goes on; an observer of that one game is told so")
    func unreadable() async throws {
        let log = Log(), single = GameLog<ObjectChange<Score>>()
        try store.save([Score(id: "a"), Score(id: "b")])
        try store.write { transaction in
            let change = try transaction.nextChange()
            try transaction.connection.run(
                "UPDATE games SET schema = 9, change = ?1, span = ?1 / 16 WHERE id = 'b'", .integer(change))
        }
        let token = store.observe(Score.self, log.receive)
        let other = store.observe(Score.self, id: "b", single.receive)
        await log.wait(for: 1)
        await single.wait(for: 1)
        #expect(log.last()?.map(\.id) == ["a"])
        guard case .unreadable(let error)? = single.calls.first else {
            Issue.record("not unreadable: \(single.calls)")
            return
        }
        #expect(error.kind == .newerSchema)
        try store.save(Score(id: "c"))
        await log.wait(for: 2)
        #expect(log.last()?.map(\.id) == ["a", "c"])
        token.invalidate()
        other.invalidate()
    }

    @Test("of one game tells its coming, changing, going and coming back")
    func object() async throws {
        let log = GameLog<ObjectChange<Score>>()
        let token = store.observe(Score.self, id: "a", log.receive)
        await log.wait(for: 1)
        try store.save(Score(id: "b"))
        try store.save(Score(id: "a", points: 1))
        await log.wait(for: 2)
        try store.delete(Score.self, id: "a")
        await log.wait(for: 3)
        try store.save(Score(id: "a", points: 2))
        await log.wait(for: 4)
        let calls = log.calls
        guard case .initial(nil) = calls[0], case .update(let first) = calls[1], case .deleted = calls[2],
            case .update(let second) = calls[3]
        else {
            Issue.record("other calls: \(calls)")
            return
        }
        #expect(first.points == 1 && second.points == 2)
        token.invalidate()
    }

    @Test("by key paths is each observer's own affair; inserted and deleted games are told whatever it names")
    func keyPaths() async throws {
        let points = Log(), notes = Log(), rows = Log(), best = GameLog<ObjectChange<Score>>()
        try store.save(Score(id: "a"))
        let tokens = [
            try store.observe(Score.self, keyPaths: [\.points], points.receive),
            try store.observe(Score.self, keyPaths: [\.note, \.id], notes.receive),
            try store.observe(Score.self, keyPaths: [\.board.rows], rows.receive),
            try store.observe(Score.self, id: "a", keyPaths: [\.best], best.receive),
        ]
        for log in [points, notes, rows] { await log.wait(for: 1) }
        await best.wait(for: 1)
        var score = Score(id: "a")
        score.note = "x"
        try store.save(score)
        await notes.wait(for: 2)
        score.points = 1
        try store.save(score)
        await points.wait(for: 2)
        score.board.rows = ["ㅅㅏㄹㅏㅁ"]
        try store.save(score)
        await rows.wait(for: 2)
        score.best = 3
        try store.save(score)
        await best.wait(for: 2)
        #expect([points, notes, rows].map(\.calls.count) == [2, 2, 2])
        guard case .update(let scores, [], [], [0], [0])? = points.calls.last else {
            Issue.record("other changes: \(points.calls)")
            return
        }
        #expect(scores.first?.note == "x")
        try store.save(Score(id: "b"))
        for log in [points, notes, rows] { await log.wait(for: 3) }
        #expect(best.calls.count == 2)
        for token in tokens { token.invalidate() }
    }

    @Test("by a property that is not stored throws at once, and says which are")
    func unknownKeyPaths() throws {
        let error = #expect(throws: StoreError.self) {
            _ = try store.observe(Score.self, keyPaths: [\.points, \.isGood]) { _ in }
        }
        #expect(error?.kind == .misuse && error?.message.contains("isGood") != true)
        #expect(throws: StoreError.self) { _ = try store.observe(Score.self, id: "a", keyPaths: [\.watched]) { _ in } }
        let skipped = #expect(throws: StoreError.self) {
            _ = try store.observe(Partly.self, keyPaths: [\.skipped]) { _ in }
        }
        #expect(skipped?.message.contains("skipped") == true && skipped?.message.contains("kept") == true)
        _ = try store.observe(Partly.self, keyPaths: [\.kept, \.maybe]) { _ in }
        _ = try store.observe(Renamed.self, keyPaths: [\.kept]) { _ in }
    }

    private struct Partly: Persistable {
        static let collection = "partly"
        var id = ""
        var timestamp = Date()
        var kept = 1
        var maybe: String?
        var skipped = 2
        enum CodingKeys: CodingKey { case id, timestamp, kept, maybe }
        static var defaults: Partly? { Partly() }
    }

    private struct Renamed: Persistable {
        static let collection = "renamed"
        var id = ""
        var timestamp = Date()
        var kept = 1
        enum CodingKeys: String, CodingKey {
            case id, timestamp
            case kept = "k"
        }
        static var defaults: Renamed? { Renamed() }
    }

    @Test("without telling who saved: the saver's next difference stands on what it saved itself")
    func silent() async throws {
        let own = Log(), other = Log()
        try store.save([Score(id: "a", points: 1), Score(id: "d", points: 9)])
        let token = store.observe(Score.self, sortedBy: .ascending(\.points)) { own.receive($0) }
        let witness = store.observe(Score.self, sortedBy: .ascending(\.points)) { other.receive($0) }
        await own.wait(for: 1)
        await other.wait(for: 1)
        try store.save(Score(id: "b", points: 5), withoutNotifying: [token])
        await other.wait(for: 2)
        let wasDeleted = try store.delete(Score.self, id: "d", withoutNotifying: [token])
        #expect(wasDeleted)
        await other.wait(for: 3)
        #expect(throws: Refusal.self) {
            try store.write(withoutNotifying: [token]) { transaction in
                try transaction.save(Score(id: "rolled-back"))
                throw Refusal()
            }
        }
        try store.save(Score(id: "c", points: 7))
        await own.wait(for: 2)
        await other.wait(for: 4)
        guard case .update(let scores, [], [2], [], [])? = own.calls.last else {
            Issue.record("other changes: \(own.calls)")
            return
        }
        #expect(scores.map(\.id) == ["a", "b", "c"])
        #expect(own.calls.count == 2)
        token.invalidate()
        witness.invalidate()
    }

    @Test("ends with an error, once and last, when the file is gone")
    func gone() async throws {
        let log = Log()
        let token = store.observe(Score.self, log.receive)
        await log.wait(for: 1)
        for file in place.files { try FileManager.default.removeItem(atPath: place.folder.path + "/" + file) }
        await log.wait(for: 2)
        guard case .error(let error)? = log.calls.last else {
            Issue.record("no error: \(log.calls)")
            return
        }
        #expect((error as? StoreError)?.kind == .cannotOpen)
        let refused = #expect(throws: StoreError.self) { try store.save(Score(id: "unseen")) }
        #expect(refused?.kind == .cannotOpen)
        let late = Log()
        let second = store.observe(Score.self, late.receive)
        await late.wait(for: 1)
        #expect(log.calls.count == 2)
        token.invalidate()
        second.invalidate()
    }

    @Test("a full disk is told to who saves; observers hear nothing of it, and of the next save exactly")
    func fullDisk() async throws {
        try store.save(Score(id: "a", points: 1))
        let log = Log()
        let token = store.observe(Score.self, log.receive)
        await log.wait(for: 1)
        try store.write { transaction in
            let pages = try transaction.connection.integer("PRAGMA page_count") ?? 0
            try transaction.connection.script("PRAGMA max_page_count = \(pages)")
        }
        let error = #expect(throws: StoreError.self) {
            try store.save((0..<2_000).map { Score(id: "full-\($0)", points: $0) })
        }
        #expect(error?.kind == .diskFull)
        try store.write { try $0.connection.script("PRAGMA max_page_count = 100000") }
        try store.save(Score(id: "b", points: 2))
        await log.wait(for: 2)
        guard case .update(let scores, [], [1], [], [])? = log.calls.last else {
            Issue.record("other changes: \(log.calls)")
            return
        }
        #expect(scores.map(\.id) == ["a", "b"])
        #expect(log.calls.count == 2)
        token.invalidate()
    }

    @Test("keeps no store alive once the tokens are gone")
    func lifetime() async throws {
        var store: GameStore? = try GameStore.inMemory()
        weak let released = store
        let log = Log()
        var token = store?.observe(Score.self, log.receive)
        await log.wait(for: 1)
        store = nil
        #expect(released != nil && token != nil)
        token = nil
        let centre = released?.observers
        #expect(centre == nil || released == nil)
    }

    @Test("as a sequence follows the store until its task is cancelled")
    func sequence() async throws {
        try store.save(Score(id: "a"))
        var iterator = store.changes(of: Score.self, sortedBy: .descending(\.points)).makeAsyncIterator()
        #expect(try await iterator.next()?.elements?.map(\.id) == ["a"])
        try store.save(Score(id: "b", points: 1))
        guard case .update(let scores, [], [0], [], [])? = try await iterator.next() else {
            Issue.record("not the insertion")
            return
        }
        #expect(scores.map(\.id) == ["b", "a"])
    }

    @Test("for a view follows the store on the main actor")
    @MainActor func view() async throws {
        try store.save(Score(id: "a"))
        let observed = store.observed(Score.self)
        #expect(observed.elements.isEmpty && !observed.isLoaded)
        await nextChange(of: observed)
        #expect(observed.isLoaded && observed.elements.map(\.id) == ["a"])
        try store.save(Score(id: "b"))
        await nextChange(of: observed)
        #expect(observed.elements.map(\.id) == ["a", "b"] && observed.error == nil)
    }

    @MainActor private func nextChange(of observed: ObservedCollection<Score>) async {
        await withCheckedContinuation { done in
            withObservationTracking {
                _ = observed.elements
            } onChange: {
                DispatchQueue.main.async { done.resume() }
            }
        }
    }

    @Test("shared by screens calls each one's one closure, at initial and at every update, on the main queue")
    @MainActor func bindings() async throws {
        enum First {}
        enum Second {}
        let (events, event) = AsyncStream.makeStream(of: String.self)
        var iterator = events.makeAsyncIterator()
        let shared = store.sharedObserver(of: Score.self)
        shared.bind(First.self) { event.yield("replaced") }
        shared.bind(First.self) {
            MainActor.preconditionIsolated()
            event.yield("first")
        }
        #expect(await iterator.next() == "first")
        shared.bind(Second.self) { event.yield("second") }
        #expect(await iterator.next() == "second")  // its own initial, though it bound late
        try store.save(Score(id: "a"))
        #expect(await iterator.next() == "first")
        #expect(await iterator.next() == "second")
        shared.unbind(First.self)
        try store.save(Score(id: "b"))
        #expect(await iterator.next() == "second")
        #expect(shared.error == nil)
    }
}
