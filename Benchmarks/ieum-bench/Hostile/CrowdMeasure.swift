/// As many open connections as the daemon may have: what each takes, how it answers among them, and what one more is told.
struct CrowdMeasure {
    private let setting: Setting
    private var bed: TestBed { setting.bed }
    private var plan: HostilePlan { setting.plan.hostile }

    private static let database = "crowd"
    private static let players = 512

    init(_ setting: Setting) {
        self.setting = setting
    }

    func run(into figures: inout Figures) throws {
        try bed.createMigratedDatabase(Self.database)
        let daemon = try bed.startDaemon(on: Self.database, options: ["--max-connections", String(plan.crowd)])
        setting.progress.say("making \(Self.players) players")
        let first = try Fleet(bed.conductor, to: daemon, count: Self.players)
        let players = try first.register()
        first.close()
        let healthy = try HealthyClient(bed.conductor, to: daemon, states: setting.states)
        let alone = try healthy.measure(plan.floodTime)
        let empty = try daemon.memory()

        // Two are the healthy client's.
        let count = plan.crowd - 2
        setting.progress.say("signing in \(count) connections")
        let fleet = try Fleet(bed.conductor, to: daemon, count: count)
        try fleet.signIn((0..<count).map { players[$0 % players.count] })
        let full = try daemon.memory()
        let among = try healthy.measure(plan.floodTime)
        try expectRefusal(daemon)
        fleet.sockets[0].close()
        try expectEntry(daemon)

        figures.set("crowd_connections", Double(plan.crowd))
        figures.set("crowd_rss_bytes_per_connection", (full - empty) / Double(count))
        figures.set("crowd_rss_bytes_with_all", full)
        for (name, before, now) in [
            ("ping", alone.pings, among.pings), ("push", alone.pushes, among.pushes),
        ] {
            for (label, share) in [("p50", 0.5), ("p99", 0.99)] {
                let (still, crowded) = (
                    HealthyClient.Latencies.milliseconds(before, share),
                    HealthyClient.Latencies.milliseconds(now, share)
                )
                figures.set("crowd_\(name)_alone_\(label)_ms", still)
                figures.set("crowd_\(name)_\(label)_ms", crowded)
                figures.set("crowd_\(name)_\(label)_over_alone", crowded / still)
            }
        }
        fleet.close()
        healthy.close()
        try daemon.stop()
    }

    /// One more is told that there are too many, when to come again, and is hung up on.
    private func expectRefusal(_ daemon: Daemon) throws {
        let line = try firstLine(daemon, waitsForEnd: true)
        guard line.hasPrefix("* BYE reason=too-many-connections retry-after=") else {
            throw BenchError("one connection too many was told \(line)")
        }
    }

    /// Where one has gone another may come.
    private func expectEntry(_ daemon: Daemon) throws {
        for _ in 0..<100 {
            if try firstLine(daemon, waitsForEnd: false).hasPrefix("IEUM 1 ") { return }
            try bed.conductor.pause(.milliseconds(20))
        }
        throw BenchError("a place that was given back is not given away")
    }

    private func firstLine(_ daemon: Daemon, waitsForEnd: Bool) throws -> String {
        let socket = try RoughSocket(bed.conductor.loop, ReceiveBuffer(), port: daemon.port, from: 0x7F00_0063)
        var bytes: [UInt8] = []
        var hasEnded = false
        socket.onBytes = { bytes += $0 }
        socket.onEnd = { hasEnded = true }
        try bed.conductor.wait(for: "the first line, and an end", atMost: .seconds(10)) {
            hasEnded || (!waitsForEnd && bytes.contains(UInt8(ascii: "\n")))
        }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }
}
