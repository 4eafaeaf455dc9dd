import Dispatch
import Foundation
import Handle
import IeumClient

/// The player's games: opens them, makes moves in them, and hears what becomes of them elsewhere.
final class GameDesk {
    let store: GameStore
    /// Nil: the device belongs to no player yet.
    let sync: SyncEngine?
    private let news: NewsBox
    private var tokens: [ObservationToken] = []
    private var watched: ObservationToken?
    private var tasks: [Task<Void, Never>] = []
    private let (settled, settle) = AsyncStream<Void>.makeStream()

    init(store: GameStore, sync: SyncEngine?, news: NewsBox) {
        (self.store, self.sync, self.news) = (store, sync, news)
    }

    deinit { stop() }

    // MARK: Games

    /// The game of a day as it is stored, or a new one.
    func game(ofDay number: Int) throws -> Game { try stored(Game(day: number)) }

    /// The practice that goes on, the one last played if there are several; or a new word.
    func practice(besides today: Int) throws -> Game {
        let open = try store.readableObjects(
            Game.self, where: { $0.isPractice && !$0.isGameFinished }, sortedBy: .descending(\.timestamp))
        // One whose state names another game would be played there.
        if let game = open.objects.first(where: { (try? stored($0)) == $0 }) { return game }
        var random = SystemRandomNumberGenerator()
        var word = AnswerWords.practice(using: &random)
        // The day's word would be given away.
        while word == AnswerWords.answer(forDay: today) { word = AnswerWords.practice(using: &random) }
        return .practice(word)
    }

    /// A game as it is stored; one that is not stored, or no longer, as it was when it began.
    func stored(_ game: Game) throws -> Game {
        Self.named(try store.object(Game.self, id: game.id), as: game)
    }

    /// Makes a move in a game as it is stored at this moment, and saves it.
    func make(_ move: Game.Move, in game: Game, at now: Date) throws -> Game {
        try store.write { transaction in
            var stored = Self.named(try transaction.object(Game.self, id: game.id), as: game)
            if stored.make(move, at: now) { try transaction.save(stored) }
            return stored
        }
    }

    /// What was stored under a game's id, or the game as it was when it began. The id that a state holds is what some device
    /// pushed, and may name another game, or none: a move must not be saved there.
    private static func named(_ stored: Game?, as game: Game) -> Game {
        var named = stored ?? Game(answer: game.answer, gameNumber: game.gameNumber)
        named.id = game.id
        return named
    }

    // MARK: Conflicts

    /// Both sides of a conflict, for people.
    func clash(_ conflict: SyncConflict, device: String?) -> Clash {
        func side(_ version: SyncVersion?, isMine: Bool) -> Clash.Side {
            Clash.Side(
                device: isMine ? device ?? "this device" : "another device",
                time: version.map { Self.time($0.saved) } ?? "no longer kept",
                game: version.flatMap { try? store.object(Game.self, in: $0) })
        }
        var shown = side(conflict.winner, isMine: conflict.hasMineWon)
        // Somebody may have played on since.
        shown.game = try? store.object(Game.self, id: conflict.id)
        return Clash(shown: shown, other: side(conflict.loser, isMine: !conflict.hasMineWon))
    }

    private static func time(_ date: Date) -> String {
        let parts = Calendar.current.dateComponents([.hour, .minute], from: date)
        let (hour, minute) = (parts.hour ?? 0, parts.minute ?? 0)
        return "\(hour < 10 ? "0" : "")\(hour):\(minute < 10 ? "0" : "")\(minute)"
    }

    // MARK: News

    /// Begins to tell the news.
    func start(showing id: String) {
        watch(id)
        tokens = [
            store.observe(Game.self, where: \.isGameFinished) { [news] change in
                if let games = change.elements { news.put(.statistics(Statistics(of: games))) }
            }
        ]
        guard let sync else { return }
        tasks = [
            Task { [news] in for await status in sync.status { news.put(.status(status)) } },
            Task { [news, settled] in
                var settlements = settled.makeAsyncIterator()
                for await event in sync.events {
                    news.put(.event(event))
                    // An event is over when the next one is asked for. What nobody settled comes again at the next start.
                    guard await settlements.next() != nil else { return }
                }
            },
        ]
    }

    /// Tells the changes of this game from now on.
    func watch(_ id: String) {
        watched?.invalidate()
        watched = store.observe(Game.self, id: id) { [news] _ in news.put(.changed) }
    }

    /// The event that was told last is done with.
    func nextEvent() { settle.yield() }

    /// Ends the news.
    func stop() {
        for task in tasks { task.cancel() }
        settle.finish()
        watched?.invalidate()
        for token in tokens { token.invalidate() }
        (tasks, tokens, watched) = ([], [], nil)
    }

    /// Counts what the server does not have yet.
    func count(_ connection: inout Connection) {
        guard sync != nil, let point = try? store.syncPoint() else { return }
        connection.unsent = point.waiting + point.unanswered
    }

    /// Lets the last saves reach the server, for a moment at most.
    /// - Returns: whether they have; true where there is no server.
    func waitUntilSent(atMost patience: Duration) -> Bool {
        guard let sync, let point = try? store.syncPoint(), point.waiting + point.unanswered > 0 else { return true }
        guard sync.currentStatus != .offline, sync.currentStatus != .signedOut else { return false }
        let done = DispatchSemaphore(value: 0)
        let task = Task {
            try? await sync.waitUntilSynced()
            done.signal()
        }
        defer { task.cancel() }
        let parts = patience.components
        let seconds = Double(parts.seconds) + Double(parts.attoseconds) * 1e-18
        return done.wait(timeout: .now() + seconds) == .success
    }
}
