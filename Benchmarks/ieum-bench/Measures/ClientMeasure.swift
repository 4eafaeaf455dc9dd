import CSQLite
import Foundation
import Glibc
import Handle
import IeumClient
import Wire

/// What the client library costs on the device: a save, the first look after a start, a long pull. Beside each the same bytes
/// by plain SQLite statements, in a file of their own with the same pragmas, so as durable.
struct ClientMeasure {
    private let setting: Setting
    private var plan: BenchPlan { setting.plan }
    private let folder: String

    /// Games in the store that is opened cold.
    private static let held = 1_000
    private static let pageSize = 500

    init(_ setting: Setting) {
        self.setting = setting
        folder = "\(setting.bed.folder)/client"
    }

    func run(into figures: inout Figures) throws {
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw BenchError.system("cannot make \(folder)") }
        var save = (ours: Samples(), oursSlow: Samples(), plain: Samples(), plainSlow: Samples(), ratio: Samples())
        var latest = (ours: Samples(), plain: Samples(), ratio: Samples())
        var pulled = (ours: Samples(), plain: Samples(), ratio: Samples())
        for round in 1...plan.clientRounds {
            setting.progress.say("round \(round) of \(plan.clientRounds): the client library, and plain SQLite")
            let saves = try saves(round)
            save.ours.add(saves.ours.median)
            save.oursSlow.add(saves.ours.slow)
            save.plain.add(saves.plain.median)
            save.plainSlow.add(saves.plain.slow)
            save.ratio.add(saves.ours.median / saves.plain.median)
            let reads = try coldReads(round)
            latest.ours.add(reads.ours)
            latest.plain.add(reads.plain)
            latest.ratio.add(reads.ours / reads.plain)
            let pulls = try pulls(round)
            pulled.ours.add(pulls.ours)
            pulled.plain.add(pulls.plain)
            pulled.ratio.add(pulls.ours / pulls.plain)
            try setting.bed.conductor.checkInterruption()
        }
        figures.set("client_save_over_sqlite", save.ratio)
        figures.set("client_save_p50_us", save.ours)
        figures.set("client_save_p99_us", save.oursSlow)
        figures.set("sqlite_upsert_p50_us", save.plain)
        figures.set("sqlite_upsert_p99_us", save.plainSlow)
        figures.set("client_latest_over_sqlite", latest.ratio)
        figures.set("client_latest_cold_us", latest.ours)
        figures.set("sqlite_latest_cold_us", latest.plain)
        figures.set("client_pulled_over_sqlite", pulled.ratio)
        figures.set("client_pulled_10k_ms", pulled.ours)
        figures.set("sqlite_pulled_10k_ms", pulled.plain)
    }

    // MARK: Saving

    private typealias Times = (median: Double, slow: Double)

    /// A game after each key, saved by the library and as its bytes, in turn.
    private func saves(_ round: Int) throws -> (ours: Times, plain: Times) {
        let store = try GameStore(at: url("save-\(round).ieum"))
        let plain = try PlainTable(path("save-\(round).sqlite"))
        var game = Game(answer: "사람", gameNumber: round)
        var ours: [Int64] = []
        var theirs: [Int64] = []
        for number in 0..<(plan.clientSaves + 50) {
            game.answerBoard[number % 6][number % 5] = Key(Jamo.allCases[number % Jamo.allCases.count], mark: .absent)
            game.currentColumn = number
            game.timestamp = Date()
            let state = try StateCoder.encode(game)
            let time = wallMicroseconds()
            let start = monotonicNanoseconds()
            try store.save(game)
            let middle = monotonicNanoseconds()
            try plain.upsert(id: game.id, timestamp: time, state: state)
            let end = monotonicNanoseconds()
            guard number >= 50 else { continue }
            ours.append(middle - start)
            theirs.append(end - middle)
        }
        guard try store.latest(Game.self)?.currentColumn == game.currentColumn else {
            throw BenchError("the store does not have the last save")
        }
        return (Self.times(ours), Self.times(theirs))
    }

    private static func times(_ nanoseconds: [Int64]) -> Times {
        let sorted = nanoseconds.sorted().map { Double($0) / 1_000 }
        return (percentile(sorted, 0.5) ?? 0, percentile(sorted, 0.99) ?? 0)
    }

    // MARK: The first look

    /// Opens a file and reads the latest game of a thousand, in microseconds.
    private func coldReads(_ round: Int) throws -> (ours: Double, plain: Double) {
        let (file, plainFile) = ("cold-\(round).ieum", "cold-\(round).sqlite")
        do {
            let store = try GameStore(at: url(file))
            let plain = try PlainTable(path(plainFile))
            let games = (0..<Self.held).map { Game(answer: "사람", gameNumber: $0) }
            try store.save(games)
            try plain.transaction {
                for (number, game) in games.enumerated() {
                    try plain.upsert(id: game.id, timestamp: Int64(number), state: StateCoder.encode(game))
                }
            }
        }
        var ours: [Int64] = []
        var theirs: [Int64] = []
        for _ in 0..<plan.clientColdReads {
            let start = monotonicNanoseconds()
            guard try GameStore(at: url(file)).latest(Game.self) != nil else { throw BenchError("the game is gone") }
            let middle = monotonicNanoseconds()
            guard try !PlainTable(path(plainFile)).latest().isEmpty else { throw BenchError("the row is gone") }
            ours.append(middle - start)
            theirs.append(monotonicNanoseconds() - middle)
        }
        return (Self.times(ours).median, Self.times(theirs).median)
    }

    // MARK: A long pull

    /// 10,000 games in pages of 500 into a store with an observer, until it has been told of all; in milliseconds.
    private func pulls(_ round: Int) throws -> (ours: Double, plain: Double) {
        let pages = try pages()
        let store = try GameStore(at: url("pull-\(round).ieum"))
        _ = try store.meet(
            SignIn(player: PlayerID(UUID()), device: DeviceID(UUID()), revision: 0), epoch: UUID(), clockOffset: 0,
            offersRefused: false)
        let all = DispatchSemaphore(value: 0)
        let count = plan.clientPulled
        let token = store.observe(Game.self) { change in
            if change.elements?.count == count { all.signal() }
        }
        let start = monotonicNanoseconds()
        var cursor: Revision = 0
        for page in pages {
            _ = try store.apply(page, since: cursor)
            cursor = page.cursor
        }
        guard all.wait(timeout: .now() + 60) == .success else { throw BenchError("the observer was not told of all") }
        let ours = monotonicNanoseconds() - start
        token.invalidate()

        let plain = try PlainTable(path("pull-\(round).sqlite"))
        let middle = monotonicNanoseconds()
        for page in pages {
            try plain.transaction {
                for game in page.games {
                    try plain.upsert(
                        id: game.game.id, timestamp: game.header.saved.microseconds, state: game.state ?? [])
                }
            }
        }
        return (Double(ours) / 1e6, Double(monotonicNanoseconds() - middle) / 1e6)
    }

    private func pages() throws -> [ChangePage] {
        let device = DeviceID(UUID())
        return try stride(from: 0, to: plan.clientPulled, by: Self.pageSize).map { start in
            let numbers = start..<min(start + Self.pageSize, plan.clientPulled)
            let games = try numbers.map { number in
                let game = Game(answer: "사람", gameNumber: number)
                let saved = Timestamp(clamping: 1_790_000_000_000_000 + Int64(number))
                return GameVersion(
                    game: try GameKey(collection: Game.collection, id: game.id),
                    header: GameHeader(
                        revision: Int64(number) + 1, saved: saved, stamp: saved, device: device, schema: 0),
                    state: try StateCoder.encode(game))
            }
            return ChangePage(
                games: games, cursor: Int64(numbers.upperBound), hasMore: numbers.upperBound < plan.clientPulled)
        }
    }

    private func path(_ name: String) -> String { "\(folder)/\(name)" }

    private func url(_ name: String) -> URL { URL(fileURLWithPath: path(name)) }
}
