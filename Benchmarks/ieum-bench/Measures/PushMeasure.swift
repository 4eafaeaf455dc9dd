/// Durable pushes a second, and their CPU, beside the yardsticks: rounds of single, ours, batch.
struct PushMeasure {
    private let setting: Setting
    private var bed: TestBed { setting.bed }
    private var plan: BenchPlan { setting.plan }

    init(_ setting: Setting) {
        self.setting = setting
    }

    func run(into figures: inout Figures) throws {
        setting.progress.say("making \(plan.players) players with \(plan.gamesPerPlayer) games each, on either side")
        let yardsticks = try Yardsticks(bed, plan, states: setting.states)
        try bed.createMigratedDatabase("games")
        let daemon = try bed.startDaemon(on: "games")
        let players = try makePlayers(daemon)

        let most = plan.players
        for count in plan.connectionCounts where count != most {
            setting.progress.say("pushes at \(count) connections")
            let result = try push(daemon, players, count, plan.otherPush)
            record(result, count, into: &figures)
        }
        var samples: [String: Samples] = [:]
        func add(_ key: String, _ value: Double) { samples[key, default: Samples()].add(value) }
        for round in 1...plan.rounds {
            setting.progress.say("round \(round) of \(plan.rounds): the yardstick single")
            let single = try yardsticks.runSingle()
            setting.progress.say("round \(round) of \(plan.rounds): pushes at \(most) connections")
            let ours = try push(daemon, players, most, plan.push)
            setting.progress.say("round \(round) of \(plan.rounds): the yardstick batch")
            let batch = try yardsticks.runBatch()

            let count = Double(ours.pushes)
            add("push_\(most)_per_s", ours.perSecond)
            add("single_per_s", single.perSecond)
            add("batch_per_s", batch.perSecond)
            add("push_\(most)_over_single", ours.perSecond / single.perSecond)
            add("push_\(most)_over_batch", ours.perSecond / batch.perSecond)
            add("push_\(most)_p50_ms", ours.latency(0.5))
            add("push_\(most)_p99_ms", ours.latency(0.99))
            add("cpu_ms_per_1000_pushes", ours.cpu.server / count * 1e6)
            add("daemon_cpu_ms_per_1000", ours.cpu.daemon / count * 1e6)
            add("postgres_cpu_ms_per_1000", ours.cpu.postgres / count * 1e6)
            add("generator_cpu_ms_per_1000", ours.cpu.generator / count * 1e6)
            add("single_cpu_ms_per_1000", single.cpuPerRow * 1e6)
            add("batch_cpu_ms_per_1000", batch.cpuPerRow * 1e6)
            add("cpu_over_single", ours.cpu.server / count / single.cpuPerRow)
        }
        for (key, values) in samples.sorted(by: { $0.key < $1.key }) { figures.set(key, values) }
        figures.set("rounds", Double(plan.rounds))
        figures.set("state_bytes", setting.states.meanSize)
        try daemon.stop()
        for database in ["games", Yardsticks.database] { try bed.dropDatabase(database) }
    }

    private func makePlayers(_ daemon: Daemon) throws -> [Player] {
        let fleet = try Fleet(bed.conductor, to: daemon, count: plan.players)
        let players = try fleet.register()
        try fleet.seedGames(players, count: plan.gamesPerPlayer, states: setting.states)
        fleet.close()
        return players
    }

    private func push(
        _ daemon: Daemon, _ players: [Player], _ count: Int, _ time: (warmUp: Duration, measured: Duration)
    ) throws -> PushLoad.Result {
        let players = players.prefix(count)
        let fleet = try Fleet(bed.conductor, to: daemon, count: count)
        try fleet.signIn(players)
        try bed.execute("CHECKPOINT", in: "games")
        let load = PushLoad(bed.conductor, fleet, players, states: setting.states, servers: try bed.meter(daemon))
        let result = try load.run(warmUp: .time(time.warmUp), measured: .time(time.measured))
        fleet.close()
        return result
    }

    private func record(_ result: PushLoad.Result, _ count: Int, into figures: inout Figures) {
        figures.set("push_\(count)_per_s", result.perSecond)
        figures.set("push_\(count)_p50_ms", result.latency(0.5))
        figures.set("push_\(count)_p99_ms", result.latency(0.99))
        figures.set("push_\(count)_cpu_ms_per_1000", result.cpu.server / Double(result.pushes) * 1e6)
    }
}
