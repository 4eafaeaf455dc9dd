import Postgres

/// What PostgreSQL does on this machine without us: hand-written SQL that stores the same states, called by pgbench.
///
/// Both yardsticks write the head and the history in one statement, prepared, with no rule for conflicts: whoever comes
/// last wins. Same server, same settings, same states, as many players and games as the daemon's side.
struct Yardsticks {
    static let database = "yardsticks"

    private let bed: TestBed
    private let plan: BenchPlan
    private let single: String
    private let batch: String
    private let state: String

    struct Result {
        var perSecond: Double
        /// CPU seconds of PostgreSQL for a row.
        var cpuPerRow: Double
    }

    init(_ bed: TestBed, _ plan: BenchPlan, states: GameStates) throws {
        self.bed = bed
        self.plan = plan
        state = String(decoding: states.all[0], as: UTF8.self)
        try bed.createDatabase(Self.database)
        try bed.execute(Self.schema, in: Self.database)
        let hundred = Array((0..<100).map { states.all[$0 % states.all.count] }.joined(separator: [UInt8(ascii: "\n")]))
        var parameters = ParameterList()
        hundred.withUnsafeBytes { parameters.append(text: $0) }
        try BlockingConnection(try bed.conninfo(Self.database), applicationName: "ieum-bench")
            .query("INSERT INTO hundred_states VALUES ($1)", parameters)
        single = try bed.write(Self.single(players: plan.players, games: plan.gamesPerPlayer), to: "single.sql")
        batch = try bed.write(Self.batch(players: plan.players, games: plan.gamesPerPlayer), to: "batch.sql")
    }

    /// One row a transaction from 16 connections.
    func runSingle() throws -> Result { try run(single, clients: 16, rows: 1) }

    /// 100 rows a statement from 4 connections.
    func runBatch() throws -> Result { try run(batch, clients: 4, rows: 100) }

    private func run(_ script: String, clients: Int, rows: Int) throws -> Result {
        let seconds = plan.yardstickSeconds
        let arguments = [
            "--no-vacuum", "--protocol=prepared", "--file=\(script)", "--client=\(clients)", "--jobs=1",
            "--define=state=\(state)", "--define=ready=0",
        ]
        try bed.execute("CHECKPOINT", in: Self.database)
        _ = try bed.pgbench(arguments + ["--time=1"], database: Self.database, atMost: .seconds(60))
        let meter = try bed.meter()
        let before = try meter.read()
        let output = try bed.pgbench(
            arguments + ["--time=\(seconds)"], database: Self.database, atMost: .seconds(seconds + 60))
        let used = try meter.read() - before
        let rowCount = try number(after: "number of transactions actually processed: ", in: output) * Double(rows)
        let failed = try number(after: "number of failed transactions: ", in: output)
        guard failed == 0, rowCount > 0 else { throw BenchError("pgbench failed: \(output)") }
        let perSecond = try number(after: "\ntps = ", in: output) * Double(rows)
        return Result(perSecond: perSecond, cpuPerRow: used.postgres / rowCount)
    }

    /// A head with the last state of each game, and every version of it.
    private static let schema = """
        CREATE TABLE games (
            player_id  uuid NOT NULL,
            collection text NOT NULL,
            game_id    text NOT NULL,
            revision   bigint NOT NULL,
            saved      timestamptz NOT NULL,
            state      json NOT NULL,
            PRIMARY KEY (player_id, collection, game_id)
        );
        CREATE TABLE game_versions (
            player_id  uuid NOT NULL,
            collection text NOT NULL,
            game_id    text NOT NULL,
            revision   bigint NOT NULL,
            saved      timestamptz NOT NULL,
            state      json NOT NULL,
            PRIMARY KEY (player_id, collection, game_id, revision)
        );
        -- What pgbench, which cannot build arrays, sends with every batch: 100 states, one a line.
        CREATE TABLE hundred_states (states text NOT NULL);
        """

    private static func statement(source: String) -> String {
        """
        WITH head AS (
            INSERT INTO games AS g (player_id, collection, game_id, revision, saved, state)
            \(source)
            ON CONFLICT (player_id, collection, game_id) DO UPDATE
                SET revision = g.revision + 1, saved = excluded.saved, state = excluded.state
            RETURNING player_id, collection, game_id, revision, saved, state)
        INSERT INTO game_versions (player_id, collection, game_id, revision, saved, state) SELECT * FROM head;

        """
    }

    private static func single(players: Int, games: Int) -> String {
        """
        \\set player random(0, \(players - 1))
        \\set game random(0, \(games - 1))

        """
            + statement(
                source: """
                    VALUES (lpad(:player::text, 32, '0')::uuid, '\(collectionName)', :game::text, 1, now(), :state::json)
                    """)
    }

    /// Each connection writes its own quarter of the games, a hundred neighbours at a time: no two batches meet.
    private static func batch(players: Int, games: Int) -> String {
        let quarter = players * games / 4
        return """
            \\if :ready = 0
            SELECT states, 1 AS ready FROM hundred_states \\gset
            \\endif
            \\set start :client_id * \(quarter) + random(0, \(quarter / 100 - 1)) * 100

            """
                + statement(
                    source: """
                        SELECT lpad(((:start::integer + n - 1) / \(games))::text, 32, '0')::uuid, '\(collectionName)',
                                   ((:start::integer + n - 1) % \(games))::text, 1, now(), state::json
                          FROM unnest(string_to_array(:states, E'\\n')) WITH ORDINALITY AS s (state, n)
                        """)
    }
}

/// The number that stands after a text in what pgbench prints.
func number(after label: String, in output: String) throws -> Double {
    guard let range = output.firstRange(of: label),
        let number = Double(output[range.upperBound...].prefix { $0.isNumber || $0 == "." })
    else { throw BenchError("pgbench did not print \(label): \(output)") }
    return number
}
