import Foundation
import Handle
import Postgres
import TestSupport

/// A database with players of 한들 whose games went through the push rule, for asking views and queries.
struct HandleHistory {
    let database: TestDatabase
    let connection: BlockingConnection
    /// Won three games, one of them in a conflict; deleted one; one goes on; two states do not fit.
    let player = UUID(uuidString: "11111111-1111-4111-8111-111111111111") ?? UUID()
    /// Lost one game.
    let other = UUID(uuidString: "22222222-2222-4222-8222-222222222222") ?? UUID()
    static let phone = UUID(uuidString: "aaaaaaaa-1111-4111-8111-111111111111") ?? UUID()
    static let tablet = UUID(uuidString: "bbbbbbbb-1111-4111-8111-111111111111") ?? UUID()

    /// An empty one.
    init() throws {
        database = try TestDatabase.migrated()
        connection = try database.connect()
        for who in [player, other] {
            try connection.execute(
                """
                SELECT register_player('\(who)', '\(Self.phone)', 'phone', sha256('\(who) 1'));
                INSERT INTO devices (player_id, device_id, name, token_hash)
                VALUES ('\(who)', '\(Self.tablet)', 'tablet', sha256('\(who) 2'));
                """)
        }
    }

    /// A game played by the game's own rules.
    static func game(_ id: String, _ number: Int, _ answer: String, guesses: [String]) throws -> Game {
        var game = Game(answer: answer, gameNumber: number)
        game.id = id
        for guess in guesses {
            let moment = Date(timeIntervalSince1970: 1_750_000_000 + Double(number * 100))
            try game.type(guess, at: moment)
            _ = game.submit(at: moment)
        }
        return game
    }

    /// Pushes a state as text; nil deletes. `saved` in seconds from now, the moment of arrival in seconds from now.
    @discardableResult
    func push(
        _ id: String, _ state: String?, by device: UUID = HandleHistory.phone, of player: UUID? = nil, saved: Int = 0,
        base: Int64? = nil, arrived: Int = 0, collection: String = "handle.game"
    ) throws -> (outcome: String, revision: Int64) {
        let state = state.map { "\(BlockingConnection.quoteLiteral($0))::json" } ?? "NULL"
        let rows = try connection.query(
            """
            SELECT outcome, revision FROM push(
                '\(player ?? self.player)', ARRAY['\(player ?? self.player)'::uuid], ARRAY['\(device)'::uuid],
                ARRAY['\(collection)'], ARRAY['\(id)'], ARRAY[clock_timestamp() + interval '\(saved) s'],
                ARRAY[\(base.map { "\($0)" } ?? "NULL")]::bigint[], ARRAY[1], ARRAY[\(state)]::json[],
                arrived => clock_timestamp() + interval '\(arrived) s')
            """)
        return (try rows.text(0, 0), try rows.isNull(0, 1) ? 0 : rows.int8(0, 1))
    }

    func push(
        _ game: Game, by device: UUID = HandleHistory.phone, of player: UUID? = nil, saved: Int = 0, base: Int64? = nil
    ) throws {
        let state = String(decoding: try Self.encoder.encode(game), as: UTF8.self)
        try push(game.id, state, by: device, of: player, saved: saved, base: base)
    }

    private static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = .sortedKeys
        return encoder
    }()

    /// The story that the tests ask about.
    static func played() throws -> HandleHistory {
        let history = try HandleHistory()
        try history.push(game("a", 1, "사람", guesses: ["마음"]))
        try history.push(game("a", 1, "사람", guesses: ["마음", "사람"]), by: tablet, base: 1)
        try history.push(game("b", 2, "나물", guesses: ["나물"]))
        try history.push(game("c", 3, "사람", guesses: ["마음", "나물", "사람"]))
        // The tablet had not seen it, and saved earlier: it loses.
        try history.push(game("c", 3, "사람", guesses: ["마음"]), by: tablet, saved: -60)
        try history.push(game("d", 4, "사람", guesses: []))
        try history.push("e", "{\"id\":\"e\",\"answer\":7}", by: tablet, saved: 600)
        try history.push("f", "[1]")
        try history.push("g", "{\"id\":\"g\"}")
        try history.push("g", nil, base: 9)
        try history.push(
            game("z", 3, "사람", guesses: ["마음", "나물", "마음", "나물", "마음", "나물"]), of: history.other)
        return history
    }

    /// The first column of a statement's rows, as psql would print it.
    func column(_ sql: String) throws -> [String] {
        guard let rows = try connection.execute(sql).last else { return [] }
        return try (0..<rows.rowCount).map { try rows.isNull($0, 0) ? "NULL" : rows.text($0, 0) }
    }
}
