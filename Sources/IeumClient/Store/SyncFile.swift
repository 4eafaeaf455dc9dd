import CSQLite
import Foundation
import Wire

/// A store's SQLite file as the sync engine sees it: games as states, without their types.
///
/// Any thread may call; a call is one transaction, on disk when it returns. Other processes may have the same file open.
package final class SyncFile: SyncStorage {
    /// `@unchecked`: only what holds the lock touches the connection.
    private final class Guarded: @unchecked Sendable {
        private let lock = NSLock()
        private let handle: OpaquePointer
        private var tables: SyncTables?
        private var notify: (@Sendable () -> Void)?

        init(_ handle: OpaquePointer) {
            self.handle = handle
            tables = SyncTables(connection: handle)
        }

        deinit {
            tables = nil
            sqlite3_close_v2(handle)
        }

        func withLock<Value>(_ body: (SyncTables, inout (@Sendable () -> Void)?) throws -> Value) throws -> Value {
            lock.lock()
            defer { lock.unlock() }
            guard let tables else {
                throw SyncStatements.Failure(code: SQLITE_MISUSE, description: "the file is closed")
            }
            return try body(tables, &notify)
        }
    }

    private let guarded: Guarded

    /// Opens the file, or makes it.
    package init(path: String) throws {
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX
        let status = sqlite3_open_v2(path, &handle, flags, nil)
        guard status == SQLITE_OK, let handle else {
            sqlite3_close_v2(handle)
            throw SyncStatements.Failure(code: status, description: "\(path) cannot be opened")
        }
        guarded = Guarded(handle)
        sqlite3_busy_timeout(handle, 10_000)
        try guarded.withLock { tables, _ in
            try tables.statements.run("PRAGMA journal_mode = WAL")
            try tables.statements.run("PRAGMA synchronous = FULL")
        }
        try transaction { tables in
            for statement in (Self.schema + SyncTables.schema).split(separator: ";\n") {
                try tables.statements.run(String(statement))
            }
        }
    }

    /// The tables of the store that the engine works with.
    private static let schema = """
        CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS games (
            collection TEXT NOT NULL, id TEXT NOT NULL, state BLOB, extra BLOB, timestamp INTEGER NOT NULL,
            schema INTEGER NOT NULL, saved INTEGER NOT NULL, stamp INTEGER, base INTEGER, device BLOB,
            unsent INTEGER NOT NULL, change INTEGER NOT NULL, PRIMARY KEY (collection, id));

        """

    private func transaction<Value>(_ body: (SyncTables) throws -> Value) throws -> Value {
        try guarded.withLock { tables, _ in
            try tables.statements.run("BEGIN IMMEDIATE")
            do {
                let value = try body(tables)
                try tables.statements.run("COMMIT")
                return value
            } catch {
                try? tables.statements.run("ROLLBACK")
                throw error
            }
        }
    }

    // MARK: The app's side

    /// Saves a game; nil deletes it. A state that is there already is not saved again.
    package func save(_ key: GameKey, _ state: [UInt8]?, schema: Int32 = 0, wall: Timestamp = .now) throws {
        try save([(key, state)], schema: schema, wall: wall)
    }

    /// Saves games in one transaction.
    package func save(_ games: [(key: GameKey, state: [UInt8]?)], schema: Int32 = 0, wall: Timestamp = .now) throws {
        try transaction { tables in
            for game in games { try tables.edit(game.key, state: game.state, schema: schema, wall: wall) }
        }
        let notify = try guarded.withLock { $1 }
        notify?()
    }

    /// All games, the deleted ones among them.
    package func heldGames() throws -> [GameKey: HeldGame] {
        try transaction { tables in
            var games: [GameKey: HeldGame] = [:]
            for key in try tables.keys("SELECT collection, id FROM games") { games[key] = try tables.read(key) }
            return games
        }
    }

    /// How many games there are that are not deleted.
    package func count() throws -> Int {
        try transaction { Int(try $0.statements.integer("SELECT count(*) FROM games WHERE state IS NOT NULL")) }
    }

    // MARK: The engine's side

    package func whenSaved(_ notify: (@Sendable () -> Void)?) {
        try? guarded.withLock { $1 = notify }
    }

    package func syncPoint() throws -> SyncPoint { try transaction { try $0.syncPoint() } }

    package func meet(_ signIn: SignIn, epoch: UUID, clockOffset: Int64) throws -> SyncPoint {
        try transaction { try $0.meet(signIn, epoch: epoch, clockOffset: clockOffset) }
    }

    package func unanswered() throws -> [Push] { try transaction { try $0.unanswered() } }

    package func takeOutgoing(limit: Int, bytes: Int) throws -> [Push] {
        try transaction { try $0.takeOutgoing(limit: limit, bytes: bytes) }
    }

    package func acknowledge(_ answers: [PushAnswer]) throws -> SyncPoint {
        try transaction { try $0.acknowledge(answers) }
    }

    package func refuse(_ push: Push, _ error: WireError) throws -> SyncPoint {
        try transaction { try $0.refuse(push, error) }
    }

    package func apply(_ page: ChangePage, since: Revision) throws -> SyncPoint {
        try transaction { try $0.apply(page, since: since) }
    }

    package func startOver(epoch: UUID) throws -> SyncPoint { try transaction { try $0.startOver(epoch: epoch) } }

    package func errands(limit: Int) throws -> [SyncErrand] { try transaction { try $0.errands(limit: limit) } }

    package func settle(_ errand: SyncErrand, _ result: SyncErrand.Result) throws -> SyncPoint {
        try transaction { try $0.settle(errand, result) }
    }

    package func events(limit: Int) throws -> [StoredSyncEvent] { try transaction { try $0.events(limit: limit) } }

    package func removeEvent(_ id: Int64) throws { try transaction { try $0.removeEvent(id) } }

    package func heldGame(_ key: GameKey) throws -> HeldGame? { try transaction { try $0.read(key) } }

    package func restore(_ key: GameKey, state: [UInt8]?, schema: Int32) throws {
        try save(key, state, schema: schema)
    }
}
