import EventLoop
import Glibc

/// How long after a push's own reply another device of the player hears `* CHANGED`.
///
/// Both ends are in this process and read the same monotonic clock. A notice that comes before the reply counts as zero.
struct NoticeMeasure {
    private let setting: Setting
    private var bed: TestBed { setting.bed }
    private var plan: BenchPlan { setting.plan }

    private static let database = "notices"

    init(_ setting: Setting) {
        self.setting = setting
    }

    func run(into figures: inout Figures) throws {
        try bed.createMigratedDatabase(Self.database)
        let daemon = try bed.startDaemon(on: Self.database)

        setting.progress.say("notices: one writer, an idle system")
        let quiet = try Pairs(bed, daemon, count: 1, states: setting.states)
        let idle = try quiet.runIdle(samples: plan.idleNotices)
        figures.set("notice_p50_ms", milliseconds(idle, 0.5))
        figures.set("notice_p99_ms", milliseconds(idle, 0.99))
        figures.set("notice_samples", Double(idle.count))

        setting.progress.say("notices: 64 writers")
        quiet.close()
        let crowd = try Pairs(bed, daemon, count: 64, states: setting.states)
        let busy = try crowd.runBusy(for: plan.busyNotices)
        figures.set("notice_64_p50_ms", milliseconds(busy, 0.5))
        figures.set("notice_64_p99_ms", milliseconds(busy, 0.99))
        figures.set("notice_64_samples", Double(busy.count))
        crowd.close()
        try daemon.stop()
    }

    private func milliseconds(_ nanoseconds: [Int64], _ share: Double) -> Double {
        Double(percentile(nanoseconds, share) ?? 0) / 1e6
    }
}

/// Players with two devices each: one pushes, the other watches.
private final class Pairs {
    private let conductor: Conductor
    private let writers: Fleet
    private let watchers: Fleet
    private let pairs: [Pair]
    private var samples: [Int64] = []

    private final class Pair {
        let device: Device
        /// Pushes that were answered and not yet noticed.
        var unnoticed: [(revision: Int64, answeredAt: Int64)] = []
        var lastNoticed: Int64 = 0

        init(_ device: Device) {
            self.device = device
        }
    }

    init(_ bed: TestBed, _ daemon: Daemon, count: Int, states: GameStates) throws {
        conductor = bed.conductor
        writers = try Fleet(conductor, to: daemon, count: count)
        watchers = try Fleet(conductor, to: daemon, count: count)
        let players = try writers.register()
        try writers.seedGames(players, count: 20, states: states)

        var codes = [String](repeating: "", count: count)
        try writers.exchange("a pairing code") { _ in
            Array("PAIR\n".utf8)
        } onLine: { index, line in
            codes[index] = try line.value("code")
            return true
        }
        try watchers.exchange("the answer to LINK") { index in
            Array("LINK \(codes[index]) device=watcher\n".utf8)
        } onLine: { index, line in
            guard try line.value("player") == players[index].id else {
                throw BenchError("a code led to another player")
            }
            return true
        }
        try watchers.watch(from: players.map(\.revision))
        pairs = zip(writers.sockets, players).enumerated().map { number, pair in
            Pair(Device(socket: pair.0, player: pair.1, states: states, seed: UInt64(number)))
        }
    }

    func close() {
        writers.close()
        watchers.close()
    }

    /// One push at a time; after its reply and its notice a pause of up to 3 ms, so that nothing else is going on.
    func runIdle(samples count: Int) throws -> [Int64] {
        var random = SplitMix(seed: 1)
        guard let pair = pairs.first else { return [] }
        var timer: EventLoop.Timer?
        func pushSoon() {
            guard samples.count < count else { return }
            timer?.reschedule(after: .microseconds(Int64.random(in: 0...3_000, using: &random)))
        }
        timer = EventLoop.Timer(on: conductor.loop, after: .seconds(3_600)) { pair.device.sendNext() }
        listen(onReply: { _ in }, onNotice: { _ in pushSoon() })
        pushSoon()
        try conductor.wait(for: "\(count) notices", atMost: .seconds(120)) { samples.count >= count }
        timer?.cancel()
        return samples.sorted()
    }

    /// Every writer pushes as fast as it is answered.
    func runBusy(for duration: Duration) throws -> [Int64] {
        var isOver = false
        var outstanding = pairs.count
        listen(
            onReply: { pair in if isOver { outstanding -= 1 } else { pair.device.sendNext() } },
            onNotice: { _ in })
        for pair in pairs { pair.device.sendNext() }
        try conductor.pause(.milliseconds(500))
        samples.removeAll()
        try conductor.pause(duration)
        isOver = true
        try conductor.wait(for: "the last replies and notices", atMost: .seconds(30)) {
            outstanding == 0 && pairs.allSatisfy { $0.unnoticed.isEmpty }
        }
        return samples.sorted()
    }

    private func listen(
        onReply: @escaping (Pair) -> Void, onNotice: @escaping (Pair) -> Void
    ) {
        for (pair, watcher) in zip(pairs, watchers.sockets) {
            pair.device.socket.onLine = { [unowned self, unowned pair] line in
                do {
                    _ = try pair.device.takeReply(line)
                    let revision = pair.device.player.revision
                    if revision <= pair.lastNoticed {
                        samples.append(0)
                        onReply(pair)
                        onNotice(pair)
                    } else {
                        pair.unnoticed.append((revision, monotonicNanoseconds()))
                        onReply(pair)
                    }
                } catch {
                    conductor.fail(error)
                }
            }
            watcher.onLine = { [unowned self, unowned pair] line in
                guard let revision = changedRevision(line) else {
                    let text = String(decoding: line.prefix(200), as: UTF8.self)
                    return conductor.fail(BenchError("a watcher heard \(text)"))
                }
                let now = monotonicNanoseconds()
                pair.lastNoticed = max(pair.lastNoticed, revision)
                let noticed = pair.unnoticed.prefix { $0.revision <= revision }
                samples.append(contentsOf: noticed.map { now - $0.answeredAt })
                pair.unnoticed.removeFirst(noticed.count)
                if !noticed.isEmpty { onNotice(pair) }
            }
        }
    }

    /// The revision in `* CHANGED revision=N`; nil for another line.
    private func changedRevision(_ line: UnsafeBufferPointer<UInt8>) -> Int64? {
        let prefix = Array("* CHANGED revision=".utf8)
        guard starts(line, with: prefix) else { return nil }
        return Int64(String(decoding: line[prefix.count...].prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self))
    }
}

extension Fleet {
    /// Has each connection, signed in, be told what comes after a revision.
    func watch(from revisions: [Int64]) throws {
        try exchange("the answer to WATCH") { index in
            Array("WATCH since=\(revisions[index])\n".utf8)
        } onLine: { _, line in
            guard line.verb == "OK" else { throw BenchError("WATCH was answered \(line.text.prefix(200))") }
            return true
        }
    }
}
