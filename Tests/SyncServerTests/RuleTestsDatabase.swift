import Foundation
import Postgres
import TestSupport

/// A database with the schema, and the SQL function `push_batch` asked as the daemon asks it, or `push` as older ones do.
struct RuleDatabase {
    typealias Push = ModelRule.Push
    typealias Answer = ModelRule.Answer

    let database: TestDatabase
    let connection: BlockingConnection

    /// - Parameter isDistributed: with `push_batch` rewritten for a distributed database, which must answer the same.
    init(isDistributed: Bool = false) throws {
        let template = try TestCluster.shared.template("rule") { conninfo in
            let connection = try BlockingConnection(conninfo)
            for file in try Self.migrations() {
                // Each text is one transaction here, in an empty database.
                let text = try String(contentsOf: file, encoding: .utf8)
                try connection.execute(text.replacing("INDEX CONCURRENTLY", with: "INDEX"))
            }
        }
        database = try TestDatabase.make(template: template)
        connection = try database.connect()
        if isDistributed {
            try connection.execute(
                String(contentsOf: Self.root.appending(path: "SQL/distributed/push.sql"), encoding: .utf8))
        }
    }

    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func migrations() throws -> [URL] {
        try FileManager.default.contentsOfDirectory(
            at: root.appending(path: "SQL/migrations"), includingPropertiesForKeys: nil
        ).filter { $0.pathExtension == "sql" }.sorted { $0.lastPathComponent < $1.lastPathComponent }
    }

    func register(player: UUID, devices: some Sequence<UUID>) throws {
        try register([(player, Array(devices))])
    }

    func register(_ players: [(player: UUID, devices: [UUID])]) throws {
        var owners = BinaryArray(of: .uuid)
        var devices = BinaryArray(of: .uuid)
        for (player, own) in players {
            for device in own {
                owners.append(player)
                devices.append(device)
            }
        }
        var parameters = ParameterList()
        parameters.append(owners)
        try connection.query(
            "INSERT INTO players (player_id) SELECT DISTINCT p FROM unnest($1) AS p ON CONFLICT DO NOTHING", parameters)
        parameters.append(devices)
        try connection.query(
            """
            INSERT INTO devices (player_id, device_id, name, token_hash)
            SELECT p, d, 'phone', sha256(convert_to(d::text, 'UTF8')) FROM unnest($1, $2) AS i (p, d)
            """, parameters)
    }

    /// Pushes a batch; `arrived` is the server's clock, nil the real one; the devices that were `verified` are vouched for.
    func push(
        _ batch: [Push], arrived: Int64? = nil, verified: Set<UUID> = [], asOlderDaemons: Bool = false
    ) throws -> [Answer] {
        try Self.push(batch, arrived: arrived, verified: verified, asOlderDaemons: asOlderDaemons, on: connection)
    }

    /// The same on another connection.
    static func push(
        _ batch: [Push], arrived: Int64? = nil, verified: Set<UUID> = [], asOlderDaemons: Bool = false,
        on connection: BlockingConnection
    ) throws -> [Answer] {
        let rows = try connection.query(
            """
            SELECT * FROM \(asOlderDaemons ? "push" : "push_batch")(
                $1, $2, $3, $4, $5, $6, $7, $8, $9, \(arrived == nil ? "" : "arrived => $11, ")verified_in => $10)
            """,
            parameters(batch, arrived: arrived, verified: verified))
        if !asOlderDaemons { return try answers(rows, batch) }
        guard rows.rowCount == batch.count, rows.columnCount == 13 else {
            throw DatabaseError(.protocol, "\(rows.rowCount) answers to \(batch.count) pushes")
        }
        return try batch.indices.map { row in
            guard try Int(rows.int4(row, 0)) == row + 1 else { throw DatabaseError(.protocol, "answers out of order") }
            return try answer(rows, row, batch[row])
        }
    }

    /// From one row of arrays.
    private static func answers(_ rows: QueryResult, _ batch: [Push]) throws -> [Answer] {
        guard rows.rowCount == 1, rows.columnCount == 12 else {
            throw DatabaseError(.protocol, "\(rows.rowCount) rows of \(rows.columnCount) columns")
        }
        if batch.isEmpty {
            guard try (0..<12).allSatisfy({ try rows.isNull(0, $0) }) else {
                throw DatabaseError(.protocol, "answers to no push")
            }
            return []
        }
        func texts(_ column: Int) throws -> [ModelRule.Outcome?] {
            if try rows.isNull(0, column) { return batch.map { _ in nil } }
            return try rows.textArray(0, column).map { word in
                guard let word else { return nil }
                guard let outcome = ModelRule.Outcome(rawValue: word) else {
                    throw DatabaseError(.protocol, "an unknown outcome: \(word)")
                }
                return outcome
            }
        }
        let outcomes = try rows.isNull(0, 0) ? batch.map { _ in .advanced } : texts(0)
        let firsts = try texts(1)
        let revisions = try rows.int8Array(0, 2)
        let stamps = try rows.microsecondsSince1970Array(0, 3)
        let rivals = try rows.isNull(0, 4) ? batch.map { _ in nil } : rows.int8Array(0, 4)
        guard
            [outcomes.count, firsts.count, revisions.count, stamps.count, rivals.count].allSatisfy({ $0 == batch.count }
            )
        else { throw DatabaseError(.protocol, "arrays of another length than the batch's") }
        let heads = try heads(rows, batch)
        return try batch.indices.map { place in
            guard let outcome = outcomes[place] else { throw DatabaseError(.protocol, "an answer without outcome") }
            return Answer(
                outcome: outcome, first: firsts[place], revision: revisions[place], stamp: stamps[place],
                rival: rivals[place], head: heads[place])
        }
    }

    private static func heads(_ rows: QueryResult, _ batch: [Push]) throws -> [Int: ModelRule.Version] {
        if try rows.isNull(0, 5) { return [:] }
        let losers = try rows.int4Array(0, 5)
        let (revisions, schemas) = (try rows.int8Array(0, 6), try rows.int4Array(0, 10))
        let (saves, stamps) = (try rows.microsecondsSince1970Array(0, 7), try rows.microsecondsSince1970Array(0, 8))
        let (devices, states) = (try rows.uuidArray(0, 9), try rows.jsonArray(0, 11))
        return try losers.indices.reduce(into: [:]) { heads, index in
            guard let loser = losers[index], let revision = revisions[index], let saved = saves[index],
                let stamp = stamps[index], let device = devices[index], let schema = schemas[index]
            else { throw DatabaseError(.protocol, "a head with gaps") }
            heads[Int(loser) - 1] = ModelRule.Version(
                revision: revision,
                push: Push(
                    game: batch[Int(loser) - 1].game, device: device, saved: saved, base: nil, schema: schema,
                    state: states[index]),
                stamp: stamp, outcome: .created, rival: nil)
        }
    }

    private static func parameters(_ batch: [Push], arrived: Int64?, verified: Set<UUID>) -> ParameterList {
        var arrays = [BinaryArray.Element.uuid, .uuid, .text, .text, .timestamptz, .int8, .int4, .json, .bool]
            .map { BinaryArray(of: $0) }
        for push in batch {
            arrays[0].append(push.game.player)
            arrays[1].append(push.device)
            arrays[2].append(push.game.collection)
            arrays[3].append(push.game.id)
            arrays[4].append(microsecondsSince1970: push.saved)
            if let base = push.base { arrays[5].append(base) } else { arrays[5].appendNull() }
            arrays[6].append(push.schema)
            if let state = push.state { arrays[7].append(state) } else { arrays[7].appendNull() }
            arrays[8].append(verified.contains(push.device))
        }
        var parameters = ParameterList()
        parameters.append(batch.first?.game.player ?? UUID())
        for array in arrays { parameters.append(array) }
        if let arrived { parameters.append(microsecondsSince1970: arrived) }
        return parameters
    }

    private static func answer(_ rows: QueryResult, _ row: Int, _ push: Push) throws -> Answer {
        func outcome(_ column: Int) throws -> ModelRule.Outcome? {
            if try rows.isNull(row, column) { return nil }
            let word = try rows.text(row, column)
            guard let outcome = ModelRule.Outcome(rawValue: word) else {
                throw DatabaseError(.protocol, "an unknown outcome: \(word)")
            }
            return outcome
        }
        guard let result = try outcome(1) else { throw DatabaseError(.protocol, "an answer without outcome") }
        return Answer(
            outcome: result, first: try outcome(2),
            revision: try rows.isNull(row, 3) ? nil : rows.int8(row, 3),
            stamp: try rows.isNull(row, 4) ? nil : rows.microsecondsSince1970(row, 4),
            rival: try rows.isNull(row, 5) ? nil : rows.int8(row, 5), head: try head(rows, row, push))
    }

    /// The head as the answer carries it; its base, outcome and rival are not told, and stay empty here.
    private static func head(_ rows: QueryResult, _ row: Int, _ push: Push) throws -> ModelRule.Version? {
        if try rows.isNull(row, 6) { return nil }
        let isDeleted = try rows.bool(row, 12)
        guard try isDeleted == rows.isNull(row, 11) else { throw DatabaseError(.protocol, "a tombstone with a state") }
        return ModelRule.Version(
            revision: try rows.int8(row, 6),
            push: Push(
                game: push.game, device: try rows.uuid(row, 9), saved: try rows.microsecondsSince1970(row, 7),
                base: nil, schema: try rows.int4(row, 10), state: isDeleted ? nil : try rows.byteArray(row, 11)),
            stamp: try rows.microsecondsSince1970(row, 8), outcome: .created, rival: nil)
    }

    /// All that is stored, as the model would hold it.
    func players() throws -> [UUID: ModelRule.Player] {
        var players: [UUID: ModelRule.Player] = [:]
        let counters = try connection.query("SELECT player_id, last_revision FROM players")
        for row in 0..<counters.rowCount {
            players[try counters.uuid(row, 0)] = ModelRule.Player(lastRevision: try counters.int8(row, 1))
        }
        let devices = try connection.query("SELECT player_id, device_id FROM devices WHERE revoked IS NULL")
        for row in 0..<devices.rowCount {
            players[try devices.uuid(row, 0)]?.devices.insert(try devices.uuid(row, 1))
        }
        let versions = try connection.query(
            """
            SELECT player_id, revision, collection, game_id, device_id, saved, base, schema, state, stamp, outcome, rival
              FROM game_versions ORDER BY player_id, revision
            """)
        for row in 0..<versions.rowCount {
            let game = try game(versions, row, collection: 2, id: 3)
            guard let outcome = ModelRule.Outcome(rawValue: try versions.text(row, 10)) else { continue }
            players[game.player]?.append(
                ModelRule.Version(
                    revision: try versions.int8(row, 1),
                    push: Push(
                        game: game, device: try versions.uuid(row, 4),
                        saved: try versions.microsecondsSince1970(row, 5),
                        base: try versions.isNull(row, 6) ? nil : versions.int8(row, 6),
                        schema: try versions.int4(row, 7),
                        state: try versions.isNull(row, 8) ? nil : versions.byteArray(row, 8)),
                    stamp: try versions.microsecondsSince1970(row, 9), outcome: outcome,
                    rival: try versions.isNull(row, 11) ? nil : versions.int8(row, 11)))
        }
        let heads = try connection.query("SELECT player_id, collection, game_id, head_revision FROM games")
        for row in 0..<heads.rowCount {
            let game = try game(heads, row, collection: 1, id: 2)
            players[game.player]?.heads[game] = try heads.int8(row, 3)
        }
        return players
    }

    private func game(_ rows: QueryResult, _ row: Int, collection: Int, id: Int) throws -> ModelRule.GameKey {
        ModelRule.GameKey(
            player: try rows.uuid(row, 0), collection: try rows.text(row, collection), id: try rows.text(row, id))
    }
}
