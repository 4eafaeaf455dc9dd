import Glibc

/// Pulls of 20 changed games on one connection, beside the same rows by a prepared SELECT on one connection.
struct PullMeasure {
    private let setting: Setting
    private var bed: TestBed { setting.bed }
    private var plan: BenchPlan { setting.plan }

    private static let database = "pulls"
    private static let changed = 20

    init(_ setting: Setting) {
        self.setting = setting
    }

    func run(into figures: inout Figures) throws {
        setting.progress.say("making players for the pulls")
        try bed.createMigratedDatabase(Self.database)
        let daemon = try bed.startDaemon(on: Self.database)
        // The player who pulls has 40 games, and 20 of them changed since it last looked; 63 others have as many.
        let fleet = try Fleet(bed.conductor, to: daemon, count: 64)
        let players = try fleet.register()
        try fleet.seedGames(players, count: Self.changed, states: setting.states)
        let cursor = players[0].revision
        try fleet.seedGames(players, count: Self.changed, states: setting.states)
        try bed.execute("VACUUM ANALYZE", in: Self.database)

        let script = try bed.write(Self.select, to: "pull.sql")
        var ours = Samples()
        var theirs = Samples()
        var ratios = Samples()
        for round in 1...plan.pullRounds {
            setting.progress.say("round \(round) of \(plan.pullRounds): pulls, by the daemon and by SQL")
            let pulls = try pull(fleet.sockets[0], since: cursor)
            let selects = try selectByPgbench(script, player: players[0].id, since: cursor)
            ours.add(pulls)
            theirs.add(selects)
            ratios.add(pulls / selects)
        }
        fleet.close()
        figures.set("pull_over_database", ratios)
        figures.set("pull_per_s", ours)
        figures.set("database_pull_per_s", theirs)
        try daemon.stop()
    }

    /// Pulls in a closed loop; every answer has its 20 games.
    /// - Returns: pulls a second.
    private func pull(_ socket: LineSocket, since cursor: Int64) throws -> Double {
        let command = Array("PULL since=\(cursor) limit=100\n".utf8)
        let game = Array("GAME \(collectionName) ".utf8)
        let end = Array("END cursor=\(cursor + Int64(Self.changed)) more=false".utf8)
        var games = 0
        var pulls = 0
        socket.onLine = { [conductor = bed.conductor] line in
            if starts(line, with: game) {
                games += 1
            } else if starts(line, with: end), games == Self.changed {
                games = 0
                pulls += 1
                socket.send(command)
            } else {
                conductor.fail(
                    BenchError("a pull, after \(games) games: \(String(decoding: line.prefix(200), as: UTF8.self))"))
            }
        }
        socket.send(command)
        try bed.conductor.pause(.milliseconds(300))
        let (before, started) = (pulls, monotonicNanoseconds())
        try bed.conductor.pause(.seconds(plan.pullSeconds))
        let rate = Double(pulls - before) / (Double(monotonicNanoseconds() - started) / 1e9)
        try finish(socket, end)
        return rate
    }

    private func finish(_ socket: LineSocket, _ end: [UInt8]) throws {
        var isDone = false
        socket.onLine = { line in if starts(line, with: end) { isDone = true } }
        try bed.conductor.wait(for: "the end of the last pull", atMost: .seconds(10)) { isDone }
    }

    private func selectByPgbench(_ script: String, player: String, since cursor: Int64) throws -> Double {
        let output = try bed.pgbench(
            [
                "--no-vacuum", "--protocol=prepared", "--file=\(script)", "--client=1", "--time=\(plan.pullSeconds)",
                "--define=player=\(player)", "--define=cursor=\(cursor)",
            ], database: Self.database, atMost: .seconds(plan.pullSeconds + 60))
        return try number(after: "\ntps = ", in: output)
    }

    private static let select = """
        SELECT v.collection, v.game_id, v.revision, v.saved, v.stamp, v.device_id, v.schema, v.state
          FROM games g
          JOIN game_versions v ON v.player_id = g.player_id AND v.revision = g.head_revision
         WHERE g.player_id = :player::uuid AND g.head_revision > :cursor::bigint
         ORDER BY g.head_revision
         LIMIT 100;

        """
}

/// Whether a line begins with some bytes.
func starts(_ line: UnsafeBufferPointer<UInt8>, with prefix: [UInt8]) -> Bool {
    guard line.count >= prefix.count, let start = line.baseAddress else { return false }
    return memcmp(start, prefix, prefix.count) == 0
}
