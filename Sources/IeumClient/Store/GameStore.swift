import CSQLite
import Foundation
import Synchronization
import Wire

/// A player's games on this device, in one SQLite file.
///
/// A save is on disk when it returns, online or not. Any thread may call anything; other processes may have the same file
/// open. One connection writes, others read beside it. Calls block for about a millisecond; ``background`` has the same for
/// `await`.
///
/// A damaged file is set aside under the name `<file>.damaged-<time>`, and a new one begun, which syncing fills again from
/// the server: ``damage`` tells. A file of another program's, or of a newer version of this library, is a
/// ``StoreError`` and stays as it is.
public final class GameStore: Sendable {
    /// The schema of the app, which every state that is saved is marked with.
    public let schemaVersion: Int32
    /// The damage that was found when the store was opened; nil: none was.
    public let damage: StoreDamage?
    /// Where the file is; nil: in memory.
    public let url: URL?

    let memory = StateMemory()
    let damagedKeys = DamagedKeys()
    let observers = StoreObservers()
    let clock: @Sendable () -> Timestamp
    let upgrade: StateUpgrade?
    private let writer: StoreWriter
    private let readers: ReaderPool?
    private let hooks = Mutex<[@Sendable (StoreCommit) -> Void]>([])
    let savedHook = Mutex<SavedHook?>(nil)
    private let mark: StoreMark?
    private let name: UUID
    private let checkpoints: IdleCheckpoint?
    /// Until the connections are closed, which go before it.
    private let openFile: OpenFile?

    /// Where the damaged file went, or what is left of it; nil: there was no damage, or nothing was left.
    public var damagedCopy: URL? { damage?.copy }

    /// Opens a store, or makes it.
    /// - Parameters:
    ///   - url: the file; its folder must exist.
    ///   - schemaVersion: the schema of the app's types; it rises with every change that needs a migration.
    /// - Throws: ``StoreError``.
    public convenience init(at url: URL, schemaVersion: Int = 0) throws {
        try self.init(path: url.path, schemaVersion: schemaVersion)
    }

    /// A store that is gone with its last reference: for tests and previews.
    public static func inMemory(schemaVersion: Int = 0) throws -> GameStore {
        try GameStore(path: ":memory:", schemaVersion: schemaVersion)
    }

    /// Opens a store.
    /// - Parameters:
    ///   - schemaVersion: of the app's types; nil: the file's own, for a program that knows no types.
    ///   - migrate: called once, inside the transaction that raises the schema version, with the version that the file
    ///     has; not called for a new file.
    ///   - upgrade: takes a single state up that an older app has saved.
    ///   - clock: the device's wall clock.
    package init(
        path: String, schemaVersion: Int?, busyMilliseconds: Int32 = 10_000,
        clock: @escaping @Sendable () -> Timestamp = { .now }, upgrade: StateUpgrade? = nil,
        migrate: ((StoreTransaction, _ oldVersion: Int) throws -> Void)? = nil
    ) throws {
        guard let asked = Int32(exactly: schemaVersion ?? 0), asked >= 0 else {
            throw StoreError(.misuse, "a schema version is 0 to \(Int32.max), not \(schemaVersion ?? 0)")
        }
        let file = StoreFile(path: path)
        let opened = try file.open(busyMilliseconds: busyMilliseconds)
        let version =
            schemaVersion == nil ? Int32(clamping: try opened.connection.integer(Self.storedVersion) ?? 0) : asked
        self.schemaVersion = version
        self.clock = clock
        self.upgrade = upgrade
        writer = StoreWriter(opened.connection)
        (mark, name, damage, openFile) = (opened.mark, opened.store, opened.damage, opened.openFile)
        readers = path == ":memory:" ? nil : ReaderPool(file: file, busyMilliseconds: busyMilliseconds)
        url = path == ":memory:" ? nil : URL(fileURLWithPath: path)
        checkpoints = path == ":memory:" ? nil : IdleCheckpoint()
        try raiseSchemaVersion(migrate)
        if url != nil, opened.isLarge { inspectLater() }
    }

    // MARK: Saving

    /// Saves a value. One that says the same as what is stored changes nothing at all.
    /// - Throws: ``StoreError``; when what is stored under the id cannot be read, it is not overwritten.
    public func save<Game: Persistable>(_ game: Game) throws {
        try write { transaction in try transaction.save(game) }
    }

    /// Saves values in one transaction.
    public func save<Game: Persistable>(_ games: some Sequence<Game>) throws {
        try write { transaction in for game in games { try transaction.save(game) } }
    }

    /// Deletes a game, whether it can be read or not; the player's other devices hear of it.
    /// - Returns: whether there was one.
    @discardableResult
    public func delete<Game: Persistable>(_ type: Game.Type, id: String) throws -> Bool {
        try write { transaction in try transaction.delete(type, id: id) }
    }

    /// Deletes a game.
    /// - Returns: whether there was one.
    @discardableResult
    public func delete<Game: Persistable>(_ game: Game) throws -> Bool {
        try delete(Game.self, id: game.id)
    }

    /// Does all that the closure does in one transaction: all of it is on disk when this returns, or nothing if it throws.
    public func write<Value>(_ body: (StoreTransaction) throws -> Value) throws -> Value {
        try write(silencing: [], body)
    }

    // MARK: Reading

    /// The game with the greatest ``Persistable/timestamp``; nil: there is none. Of several with the same, the one with
    /// the greatest id.
    /// - Throws: ``StoreError`` when that game cannot be read; that is never "no game".
    public func latest<Game: Persistable>(_ type: Game.Type) throws -> Game? {
        try readBriefly { reader in try reader.latest(type) }
    }

    /// A game; nil: there is none with this id.
    public func object<Game: Persistable>(_ type: Game.Type, id: String) throws -> Game? {
        try readBriefly { reader in try reader.object(type, id: id) }
    }

    /// Games of a type, as one moment had them.
    /// - Parameters:
    ///   - type: the games' type.
    ///   - isIncluded: which ones; all if left out.
    ///   - orders: how they are sorted, the first one first; what they leave equal, and all if left out, is by id.
    /// - Throws: ``StoreError`` when one cannot be read. ``readableObjects(_:where:sortedBy:)`` goes on without it.
    public func objects<Game: Persistable>(
        _ type: Game.Type, where isIncluded: (Game) throws -> Bool = { _ in true },
        sortedBy orders: GameOrder<Game>...
    ) throws -> [Game] {
        GameOrder.sort(try read { reader in try reader.objects(type) }.filter(isIncluded), by: orders)
    }

    /// Games of a type that can be read, and why the others cannot.
    public func readableObjects<Game: Persistable>(
        _ type: Game.Type, where isIncluded: (Game) throws -> Bool = { _ in true },
        sortedBy orders: GameOrder<Game>...
    ) throws -> (objects: [Game], unreadable: [StoreError]) {
        var games: [Game] = []
        var errors: [StoreError] = []
        try read { reader in
            for row in try reader.rows(Game.collection) {
                do throws(StoreError) {
                    games.append(try reader.decode(type, row))
                } catch {
                    errors.append(error)
                }
            }
        }
        return (GameOrder.sort(try games.filter(isIncluded), by: orders), errors)
    }

    /// How many games of a type there are, those included that cannot be read.
    public func count<Game: Persistable>(_ type: Game.Type) throws -> Int {
        try read { reader in try reader.count(Game.collection) }
    }

    // MARK: For the modules beside the store

    /// One transaction; its commit is not told to the observers named.
    package func write<Value>(
        silencing silenced: Set<ObjectIdentifier>, _ body: (StoreTransaction) throws -> Value
    ) throws -> Value {
        defer { keepDamagedAside() }
        let (value, commit, isWritten) = try writer.locked {
            let connection = writer.connection
            let before = connection.totalChanges
            let transaction = StoreTransaction(self, writer)
            defer { transaction.close() }
            do {
                try connection.run("BEGIN IMMEDIATE")
                // What is written to a file that is gone is lost with this process.
                if let url, connection.hasFileMoved { throw Self.fileIsGone(url) }
                transaction.begin(after: writer.savedRow)
                let value = try body(transaction)
                let saved = transaction.savedRow
                try connection.run("COMMIT")
                writer.savedRow = saved.flatMap { SavedRow($0, version: connection.dataVersion) }
                if let change = transaction.lastChange { mark?.write(StoreMark.Content(store: name, change: change)) }
                return (
                    value,
                    StoreCommit(collections: transaction.changed, rows: transaction.rows, silenced: silenced),
                    connection.totalChanges != before
                )
            } catch {
                // SQLite may have rolled back by itself, e.g. when the disk is full.
                if connection.isInTransaction { try? connection.run("ROLLBACK") }
                memory.forgetAll()
                writer.savedRow = nil
                throw noticed(error)
            }
        }
        if !commit.collections.isEmpty { tell(commit) }
        if !commit.rows.isEmpty { savedHook.withLock { $0?.notify }?() }
        if isWritten { checkpoints?.committed(self) }
        return value
    }

    /// All games of a collection by id, undecoded, as one moment had them.
    package func rows(of collection: String) throws -> [StoredGame] {
        try read { reader in try reader.rows(collection) }
    }

    /// The ids of a collection's games, ascending, with the change that each was last made by.
    package func changes(of collection: String) throws -> [(id: String, change: Int64)] {
        try read { reader in
            var changes: [(id: String, change: Int64)] = []
            try reader.connection.rows(
                "SELECT id, change FROM games WHERE collection = ? AND state IS NOT NULL ORDER BY id",
                [.text(collection)]
            ) { row in
                changes.append((row.text(0) ?? "", row.integer(1)))
            }
            return changes
        }
    }

    /// A value of a row.
    package func decode<Game: Persistable>(_ type: Game.Type, _ row: StoredGame) throws(StoreError) -> Game {
        defer { keepDamagedAside() }
        return try reader(writer.connection).decode(type, row)
    }

    /// The names of the collections that have games.
    package func collections() throws -> Set<String> {
        try read { reader in
            var names: Set<String> = []
            try reader.connection.rows("SELECT DISTINCT collection FROM games") { names.insert($0.text(0) ?? "") }
            return names
        }
    }

    /// A number that changes whenever another process has changed the file; of no meaning between two openings.
    package func foreignChanges() throws -> Int64 {
        try writer.locked { try writer.connection.integer("PRAGMA data_version") ?? 0 }
    }

    /// Calls a closure after each commit that changed what apps see, on the thread of who saved, after the save is done.
    /// Whoever hears of a commit reads what there is now: two commits may be told in the other order.
    package func whenCommitted(_ hook: @escaping @Sendable (StoreCommit) -> Void) {
        hooks.withLock { $0.append(hook) }
    }

    /// Tells of changes that were not made through this store.
    package func tell(_ commit: StoreCommit) {
        for hook in hooks.withLock({ $0 }) { hook(commit) }
    }

    /// The time that a state tells under `timestamp`, in microseconds since 1970; nil: it tells none.
    package static func timestamp(ofState state: [UInt8]) -> Int64? {
        guard let raw = try? RawJSON(checking: state) else { return nil }
        return raw["timestamp"]?.string.flatMap { DateText.microseconds($0) }
    }

    /// Reads a row or two: on the connection that writes if it is free, so that the first look after an opening does not
    /// wait for a second connection.
    private func readBriefly<Value>(_ body: (StoreReader) throws -> Value) throws -> Value {
        defer { keepDamagedAside() }
        do {
            if readers != nil, let value = try writer.lockedIfFree({ try body(reader(writer.connection)) }) {
                return value
            }
        } catch {
            throw noticed(error)
        }
        return try read(body)
    }

    func read<Value>(_ body: (StoreReader) throws -> Value) throws -> Value {
        defer { keepDamagedAside() }
        do {
            guard let readers else { return try writer.locked { try body(reader(writer.connection)) } }
            return try readers.use { try body(reader($0)) }
        } catch {
            throw noticed(error)
        }
    }

    private func reader(_ connection: SQLiteConnection) -> StoreReader {
        StoreReader(
            connection: connection, memory: memory, schemaVersion: schemaVersion, upgrade: upgrade, damaged: damagedKeys
        )
    }

    /// Takes note of damage for the next opening.
    private func noticed(_ error: any Error) -> any Error {
        if let error = error as? StoreError, error.kind == .damaged, let url {
            StoreFile(path: url.path).suspectDamage()
        }
        return error
    }

    private static let storedVersion = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'schema_version'"

    private func raiseSchemaVersion(_ migrate: ((StoreTransaction, Int) throws -> Void)?) throws {
        if try writer.locked({ try writer.connection.integer(Self.storedVersion) }) == Int64(schemaVersion) { return }
        try write { transaction in
            let connection = transaction.connection
            let known = try connection.integer(Self.storedVersion)
            if let known {
                guard known <= Int64(schemaVersion) else {
                    throw StoreError(
                        .newerSchemaVersion,
                        "\(connection.path) has schema version \(known), and the app \(schemaVersion)",
                        hint: "Update the app. The file was left as it is.")
                }
                if known == Int64(schemaVersion) { return }
                try migrate?(transaction, Int(known))
            }
            try connection.run(
                """
                INSERT INTO meta (key, value) VALUES ('schema_version', ?)
                ON CONFLICT (key) DO UPDATE SET value = excluded.value
                """, .integer(Int64(schemaVersion)))
        }
    }
}

/// What a commit has changed of what apps see.
package struct StoreCommit: Sendable {
    /// The collections with changed rows.
    package var collections: Set<String>
    /// Of local saves, the games and the changes that they were given.
    package var rows: [GameKey: Int64]
    /// The observers that are not to be called for these rows.
    package var silenced: Set<ObjectIdentifier>

    /// Puts a commit together.
    package init(collections: Set<String>, rows: [GameKey: Int64] = [:], silenced: Set<ObjectIdentifier> = []) {
        self.collections = collections
        self.rows = rows
        self.silenced = silenced
    }
}
