import Foundation
import Postgres
import SyncServer
import Synchronization
import TestSupport

@testable import Migrator

/// A database with Ieum's schema, and players whose games are people, for tests of SQL/recipes.
final class People {
    static let recipes = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../SQL/recipes")
        .standardizedFileURL.path(percentEncoded: false)
    /// The device that migrations push as.
    static let migrator = "00000000-0000-0000-0000-000000000000"

    let database: TestDatabase
    private let connection: BlockingConnection

    init() throws {
        let template = try TestCluster.shared.template("people") { conninfo in
            _ = try Migrator(set: MigrationSet(name: "ieum", embedded: EmbeddedMigrations.files), database: conninfo)
                .up()
        }
        database = try TestDatabase.make(template: template)
        connection = try database.connect()
    }

    static func player(_ number: Int) -> String { identifier("a", number) }

    static func device(_ number: Int) -> String { identifier("d", number) }

    private static func identifier(_ letter: Character, _ number: Int) -> String {
        let digits = String(number)
        return "\(letter)0000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
    }

    /// Signs up a player with one device.
    func signUp(_ number: Int) throws {
        try execute(
            "SELECT register_player('\(Self.player(number))', '\(Self.device(number))', 'phone', sha256('secret'))")
    }

    /// Runs the files of SQL/recipes, as `ieumd migrate up --dir` does, and gives the names of those that were applied.
    @discardableResult
    func runRecipes() throws -> [String] {
        try Migrator(set: MigrationSet(name: "recipes", directory: Self.recipes), database: database.conninfo).up()
            .applied.map(\.name)
    }

    /// The first file alone, for tests with functions of their own.
    func install() throws {
        let file = URL(filePath: Self.recipes).appending(path: "0001_state_migrations.sql")
        try execute(String(contentsOf: file, encoding: .utf8))
    }

    func execute(_ sql: String) throws {
        try connection.execute(sql)
    }

    func rows(_ sql: String) throws -> [String] {
        try connection.rows(sql)
    }

    /// A device's push, in the connection's transaction if there is one; its outcome and revision.
    @discardableResult
    func push(_ push: PersonPush) throws -> String {
        try rows(push.sql).first ?? ""
    }

    /// Runs SQL in a session of its own, on a thread of its own.
    func inBackground(_ sql: String) -> Background<[String]> {
        let database = database
        return Background { try database.connect().rows(sql) }
    }

    /// Waits until a session waits for a lock of the given type, and gives its process on the server.
    func waitForLock(_ type: String) throws -> Int {
        let sql = """
            SELECT l.pid FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
            WHERE NOT l.granted AND l.locktype = '\(type)' AND a.datname = current_database()
            """
        let deadline = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < deadline {
            if let pid = try database.connect().rows(sql).first.flatMap({ Int($0) }) { return pid }
            usleep(5000)
        }
        throw ProbeError(description: "nobody waited for a lock (\(type)) within a minute")
    }
}

/// One push of a person by the device of its player.
struct PersonPush: Sendable {
    var player = 1
    var collection = "contacts.person"
    var game = "g"
    /// Text of a time, or an expression of SQL in parentheses.
    var saved = "2026-01-01 12:00Z"
    var base = 0
    var schema = 0
    var state: String?

    var sql: String {
        let state = state.map { BlockingConnection.quoteLiteral($0) } ?? "NULL"
        let saved = saved.hasPrefix("(") ? saved : "'\(saved)'"
        return """
            SELECT outcome, revision FROM push('\(People.player(player))', ARRAY['\(People.player(player))']::uuid[],
                ARRAY['\(People.device(player))']::uuid[], ARRAY['\(collection)'], ARRAY['\(game)'],
                ARRAY[\(saved)]::timestamptz[], ARRAY[\(base)]::bigint[], ARRAY[\(schema)], ARRAY[\(state)]::json[])
            """
    }
}

/// Work on a thread of its own, with what became of it.
final class Background<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, any Error>?>(nil)
    private let done = DispatchSemaphore(value: 0)

    init(_ body: @escaping @Sendable () throws -> Value) {
        Thread.detachNewThread { [self] in
            let value = Result { try body() }
            result.withLock { $0 = value }
            done.signal()
        }
    }

    /// Waits for its end.
    func value() throws -> Value {
        guard done.wait(timeout: .now() + 300) == .success, let result = result.withLock({ $0 }) else {
            throw ProbeError(description: "the work did not end within five minutes")
        }
        return try result.get()
    }
}

extension BlockingConnection {
    /// The rows of the last statement, each with its columns joined by a bar.
    func rows(_ sql: String) throws -> [String] {
        guard let result = try execute(sql).last else { return [] }
        return try (0..<result.rowCount).map { row in
            try (0..<result.columnCount).map { column in
                try result.isNull(row, column) ? "" : result.text(row, column)
            }.joined(separator: "|")
        }
    }
}
