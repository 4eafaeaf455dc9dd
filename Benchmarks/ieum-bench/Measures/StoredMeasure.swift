import Postgres

/// What a push costs with few and with many versions stored.
///
/// Two databases take turns, and in both the same 50 players push their 20 games. In `few`, made anew for every round,
/// there is nothing else, and one version of each game. In `many` there are hundreds of other players, and all games have
/// long histories, filled in by SQL in the order in which the versions would have come.
struct StoredMeasure {
    private let setting: Setting
    private var bed: TestBed { setting.bed }
    private var plan: BenchPlan { setting.plan }

    private static let activePlayers = 50
    /// Pushes before and in a burst: enough for the clock, few enough that `few` stays small.
    private static let burst = (warmUp: 500, measured: 4_000)
    /// Pushes that `many` gets once, so that every page that pushes touch was touched since the checkpoint. A page's
    /// first change after a checkpoint costs a copy of it in the log, which a long run hardly feels and a burst would.
    private static let touching = 4_000

    init(_ setting: Setting) {
        self.setting = setting
    }

    func run(into figures: inout Figures) throws {
        let few = Self.activePlayers * plan.gamesPerPlayer
        let many = plan.players * plan.gamesPerPlayer * plan.storedVersionsPerGame
        setting.progress.say("storing \(grouped(Double(many))) versions")
        try bed.createMigratedDatabase("few_template")
        let players = try makePlayers(in: "few_template", count: Self.activePlayers)
        try bed.execute("VACUUM ANALYZE", in: "few_template")
        try bed.createDatabase("many", from: "few_template")
        _ = try makePlayers(in: "many", count: plan.players - Self.activePlayers)
        for version in 2...plan.storedVersionsPerGame { try bed.execute(oneVersionMore(version), in: "many") }
        try bed.execute("VACUUM ANALYZE", in: "many")
        try bed.execute("CHECKPOINT", in: "many")
        _ = try push(in: "many", players, warmUp: Self.touching)

        var cpu = (few: Samples(), many: Samples(), ratio: Samples())
        var time = Samples()
        for round in 1...plan.storedRounds {
            setting.progress.say(
                "round \(round) of \(plan.storedRounds): pushes with few and with many versions stored")
            try bed.dropDatabase("few")
            try bed.createDatabase("few", from: "few_template")
            let first = try push(in: "few", players)
            let second = try push(in: "many", players)
            cpu.few.add(first.cpu.server / Double(first.pushes) * 1e6)
            cpu.many.add(second.cpu.server / Double(second.pushes) * 1e6)
            cpu.ratio.add(second.cpu.server / first.cpu.server)
            time.add(second.seconds / first.seconds)
        }
        figures.set("push_cost_1m_over_1k", cpu.ratio)
        figures.set("push_time_1m_over_1k", time)
        figures.set("push_cost_few_versions", Double(few))
        figures.set("push_cost_many_versions", Double(many))
        figures.set("push_few_cpu_ms_per_1000", cpu.few)
        figures.set("push_many_cpu_ms_per_1000", cpu.many)
        for database in ["few", "many", "few_template"] { try bed.dropDatabase(database) }
    }

    /// Makes players with one version of each of their games.
    private func makePlayers(in database: String, count: Int) throws -> [Player] {
        let daemon = try bed.startDaemon(on: database, isDurable: false)
        let fleet = try Fleet(bed.conductor, to: daemon, count: count)
        let players = try fleet.register()
        try fleet.seedGames(players, count: plan.gamesPerPlayer, states: setting.states)
        fleet.close()
        try daemon.stop()
        return players
    }

    private func push(
        in database: String, _ owners: [Player], warmUp: Int = burst.warmUp
    ) throws -> PushLoad.Result {
        let daemon = try bed.startDaemon(on: database)
        let fleet = try Fleet(bed.conductor, to: daemon, count: owners.count)
        let players = owners.map { Player(id: $0.id, token: $0.token) }
        try fleet.signIn(players)
        try fleet.learnGames(players)
        let load = PushLoad(bed.conductor, fleet, players, states: setting.states, servers: try bed.meter(daemon))
        let result = try load.run(warmUp: .pushes(warmUp), measured: .pushes(Self.burst.measured))
        fleet.close()
        try daemon.stop()
        return result
    }

    /// Advances every game of every player by a version, as so many pushes in turn would have done.
    private func oneVersionMore(_ version: Int) -> String {
        let states = setting.states.all
        let state = BlockingConnection.quoteLiteral(String(decoding: states[version % states.count], as: UTF8.self))
        return """
            BEGIN;
            INSERT INTO game_versions (player_id, revision, device_id, saved, stamp, received, base, schema, size,
                                       collection, game_id, outcome, state)
            SELECT g.player_id, g.head_revision + \(plan.gamesPerPlayer), g.device_id,
                   g.saved + interval '1 microsecond', g.stamp + interval '1 microsecond', now(), g.head_revision, 1,
                   octet_length(s.state), g.collection, g.game_id, 'advanced', s.state::json
              FROM games AS g CROSS JOIN (SELECT \(state)) AS s (state);
            UPDATE games SET head_revision = head_revision + \(plan.gamesPerPlayer),
                   saved = saved + interval '1 microsecond', stamp = stamp + interval '1 microsecond';
            UPDATE players SET last_revision = last_revision + \(plan.gamesPerPlayer);
            COMMIT;
            """
    }
}
