/// Pushes over TLS beside pushes over plain TCP, in turn: two daemons on one database, the same players.
struct TLSMeasure {
    /// How many connections push.
    static let connections = 64

    private let setting: Setting
    private var bed: TestBed { setting.bed }
    private var plan: BenchPlan { setting.plan }

    init(_ setting: Setting) {
        self.setting = setting
    }

    func run(into figures: inout Figures) throws {
        try bed.createMigratedDatabase("secure")
        let plain = try bed.startDaemon(on: "secure")
        let secure = try bed.startDaemon(on: "secure", isSecure: true)
        let players = try makePlayers(plain)
        var samples: [String: Samples] = [:]
        for round in 1...plan.rounds {
            setting.progress.say("round \(round) of \(plan.rounds): pushes over TLS and over plain TCP")
            // Who comes first changes, since the second finds a fuller database.
            let isPlainFirst = round % 2 == 1
            var results: [Bool: PushLoad.Result] = [:]
            for isSecure in [!isPlainFirst, isPlainFirst] {
                results[isSecure] = try push(isSecure ? secure : plain, players)
            }
            guard let over = results[true], let beside = results[false] else { continue }
            samples["push_64_tls_over_plain", default: Samples()].add(over.perSecond / beside.perSecond)
            for (name, result) in [("tls", over), ("plain", beside)] {
                let count = Double(result.pushes)
                func add(_ key: String, _ value: Double) {
                    samples["push_64_\(name)_\(key)", default: Samples()].add(value)
                }
                add("per_s", result.perSecond)
                add("p99_ms", result.latency(0.99))
                add("daemon_cpu_ms_per_1000", result.cpu.daemon / count * 1e6)
                add("generator_cpu_ms_per_1000", result.cpu.generator / count * 1e6)
            }
        }
        for (key, values) in samples.sorted(by: { $0.key < $1.key }) { figures.set(key, values) }
        try plain.stop()
        try secure.stop()
        try bed.dropDatabase("secure")
    }

    private func makePlayers(_ daemon: Daemon) throws -> [Player] {
        let fleet = try Fleet(bed.conductor, to: daemon, count: Self.connections)
        let players = try fleet.register()
        try fleet.seedGames(players, count: plan.gamesPerPlayer, states: setting.states)
        fleet.close()
        return players
    }

    private func push(_ daemon: Daemon, _ players: [Player]) throws -> PushLoad.Result {
        let fleet = try Fleet(bed.conductor, to: daemon, count: Self.connections)
        try fleet.signIn(players)
        try bed.execute("CHECKPOINT", in: "secure")
        let load = PushLoad(bed.conductor, fleet, players, states: setting.states, servers: try bed.meter(daemon))
        let result = try load.run(warmUp: .time(plan.otherPush.warmUp), measured: .time(plan.otherPush.measured))
        fleet.close()
        return result
    }
}
