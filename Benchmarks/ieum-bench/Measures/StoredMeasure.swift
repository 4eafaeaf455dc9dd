import Postgres

/// What a push costs with few and with many versions stored.
///
/// Two databases of the same players take turns: `few` is made anew for every round with two versions a player, `many` is
/// filled by SQL, in the order in which versions would have come.
struct StoredMeasure {
    private let setting: Setting
    private var bed: TestBed { setting.bed }
    private var plan: BenchPlan { setting.plan }

    /// Pushes before and in a burst: enough for the clock, few enough that `few` stays small.
    private static let burst = (warmUp: 1_024, measured: 4_096)
    /// Pushes that `many` gets once, so that every page that pushes touch was touched since the checkpoint. A page's
    /// first change after a checkpoint costs a copy of it in the log, which a long run hardly feels and a burst would.
    private static let touching = 20_000

    init(_ setting: Setting) {
        self.setting = setting
    }

    func run(into figures: inout Figures) throws {
        let stored = plan.players * (2 + plan.gamesPerPlayer * plan.storedVersionsPerGame)
        setting.progress.say("storing \(grouped(Double(stored))) versions")
        let tokens = try makeTemplate()
        try bed.createDatabase("many", from: "few_template")
        for version in 1...plan.storedVersionsPerGame { try bed.execute(fill(version), in: "many") }
        try bed.execute("VACUUM ANALYZE", in: "many")
        try bed.execute("VACUUM ANALYZE", in: "few_template")
        try bed.execute("CHECKPOINT", in: "many")
        _ = try push(in: "many", tokens, warmUp: Self.touching)

        var (few, many) = (Burst(), Burst())
        var ratios = (cpu: Samples(), time: Samples())
        for round in 1...plan.storedRounds {
            setting.progress.say(
                "round \(round) of \(plan.storedRounds): pushes with few and with many versions stored")
            try bed.dropDatabase("few")
            try bed.createDatabase("few", from: "few_template")
            let first = try push(in: "few", tokens)
            let second = try push(in: "many", tokens)
            few.add(first)
            many.add(second)
            ratios.cpu.add(second.cpu.server / first.cpu.server)
            ratios.time.add(second.seconds / first.seconds)
        }
        figures.set("push_cost_1m_over_1k", ratios.cpu)
        figures.set("push_time_1m_over_1k", ratios.time)
        figures.set("push_cost_few_versions", Double(plan.players * 2))
        figures.set("push_cost_many_versions", Double(stored))
        figures.set("push_few_cpu_ms_per_1000", few.cpu)
        figures.set("push_many_cpu_ms_per_1000", many.cpu)
        for database in ["few", "many"] { try bed.dropDatabase(database) }
    }

    private struct Burst {
        var cpu = Samples()

        mutating func add(_ result: PushLoad.Result) {
            cpu.add(result.cpu.server / Double(result.pushes) * 1e6)
        }
    }

    /// Makes the database that the others are copies of: players with two games of one version each.
    private func makeTemplate() throws -> [Player] {
        try bed.createMigratedDatabase("few_template")
        let daemon = try bed.startDaemon(on: "few_template", isDurable: false)
        let fleet = try Fleet(bed.conductor, to: daemon, count: plan.players)
        let players = try fleet.register()
        try fleet.seedGames(players, count: 2, states: setting.states)
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
        let result = try PushLoad(bed.conductor, fleet, players, states: setting.states, servers: try bed.meter(daemon))
            .run(warmUp: .pushes(warmUp), measured: .pushes(Self.burst.measured))
        fleet.close()
        try daemon.stop()
        return result
    }

    /// One more version of each of a player's games, for all players; the first time, the games too.
    ///
    /// Revisions go round the games, so `version` v of game g is revision 2 + (v - 1) × games + g.
    private func fill(_ version: Int) -> String {
        let games = plan.gamesPerPlayer
        let state = BlockingConnection.quoteLiteral(
            String(decoding: setting.states.all[version % setting.states.all.count], as: UTF8.self))
        return """
            BEGIN;
            INSERT INTO game_versions (player_id, revision, device_id, saved, stamp, received, base, rival, schema, size,
                                       collection, game_id, outcome, state)
            SELECT d.player_id, 2 + (\(version) - 1) * \(games) + g, d.device_id, t.moment, t.moment, t.moment,
                   \(version == 1 ? "0" : "2 + (\(version) - 2) * \(games) + g"), NULL, 1,
                   octet_length(s.state), '\(collectionName)', md5(d.player_id::text || g)::uuid::text,
                   \(version == 1 ? "'created'" : "'advanced'"), s.state::json
              FROM generate_series(1, \(games)) AS g
             CROSS JOIN devices AS d
             CROSS JOIN (SELECT clock_timestamp() - interval '1 day' + \(version) * interval '1 minute') AS t (moment)
             CROSS JOIN (SELECT \(state)) AS s (state);
            \(version == 1 ? newHeads : movedHeads)
            UPDATE players SET last_revision = last_revision + \(games);
            COMMIT;
            """
    }

    private var newHeads: String {
        """
        INSERT INTO games (player_id, head_revision, stamp, saved, device_id, collection, game_id)
        SELECT player_id, revision, stamp, saved, device_id, collection, game_id FROM game_versions WHERE revision > 2;
        """
    }

    private var movedHeads: String {
        """
        UPDATE games AS g SET head_revision = v.revision, stamp = v.stamp, saved = v.saved
          FROM players AS p JOIN game_versions AS v
            ON v.player_id = p.player_id AND v.revision > p.last_revision
         WHERE g.player_id = v.player_id AND g.collection = v.collection AND g.game_id = v.game_id;
        """
    }
}
