import CSQLite
import Foundation
import Wire

extension GameStore {
    /// Opens a store, and brings what an older app has stored to the app's schema.
    ///
    /// A new file is made with the version, and the block is not called; nor is it when the versions are equal. A file of a
    /// lower version is migrated in one transaction: when the block throws, or the process is killed, the old file is as it
    /// was. A file of a higher version is a ``StoreError`` `newerSchemaVersion`.
    ///
    /// The block is kept: single states that arrive from devices with an older app are taken up by it when they are read.
    /// A state of a *newer* app is kept as it is; reading it is a ``StoreError`` `newerSchema`, and a save under its id
    /// does not overwrite it.
    /// - Parameters:
    ///   - url: the file; its folder must exist.
    ///   - schemaVersion: the schema of the app's types; it rises with every change that needs a migration.
    ///   - migration: changes the stored objects; gets the version that they have. See ``Migration``.
    /// - Throws: ``StoreError``, and whatever the block throws.
    public convenience init(
        at url: URL, schemaVersion: Int,
        migration: @escaping @Sendable (_ migration: Migration, _ oldVersion: Int) throws -> Void
    ) throws {
        try self.init(path: url.path, ladder: SchemaLadder(to: schemaVersion, migration))
    }

    /// A store that is gone with its last reference, for tests and previews, which takes pulled states up by a migration.
    public static func inMemory(
        schemaVersion: Int, migration: @escaping @Sendable (_ migration: Migration, _ oldVersion: Int) throws -> Void
    ) throws -> GameStore {
        try GameStore(path: ":memory:", ladder: SchemaLadder(to: schemaVersion, migration))
    }

    /// Opens a store without any migration, for development: a file of another schema version, lower or higher, is set
    /// aside as `<file>.schema-<version>-<time>`, and an empty one begun. What it held and had not sent is in that copy
    /// alone. No other process may have the file open.
    /// - Parameters:
    ///   - url: the file; its folder must exist.
    ///   - schemaVersion: the schema of the app's types.
    ///   - deleteIfMigrationNeeded: whether to do so; false: the versions must be equal, or the file's lower, and what is
    ///     stored is read as it is.
    ///   - setAside: told where the old file is now.
    public convenience init(
        at url: URL, schemaVersion: Int, deleteIfMigrationNeeded: Bool, setAside: (URL) -> Void = { _ in }
    ) throws {
        if deleteIfMigrationNeeded, let aside = try StoreFile(path: url.path).setAside(unlessSchema: schemaVersion) {
            setAside(URL(fileURLWithPath: aside))
        }
        try self.init(path: url.path, schemaVersion: schemaVersion)
    }

    /// Opens a store with a way up from older schemas.
    package convenience init(
        path: String, ladder: SchemaLadder, busyMilliseconds: Int32 = 10_000,
        clock: @escaping @Sendable () -> Timestamp = { .now }
    ) throws {
        try self.init(
            path: path, schemaVersion: ladder.version, busyMilliseconds: busyMilliseconds, clock: clock,
            upgrade: { key, state, schema in try ladder.state(of: key, state, schema: schema) },
            migrate: { transaction, oldVersion in
                let rows = try FileRows(transaction, from: oldVersion, to: ladder.version)
                try rows.climb(ladder)
                let migration = try Migration(newVersion: ladder.version, rows: rows)
                defer { migration.close() }
                try ladder.climb(migration, oldVersion)
                try rows.finish()
            })
    }
}

extension StoreFile {
    /// Sets a store's file aside that has another schema version; nil: there is no file, or it has this one.
    func setAside(unlessSchema version: Int) throws(StoreError) -> String? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        let known: Int64
        do throws(StoreError) {
            let connection = try SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE)
            guard try connection.integer("PRAGMA application_id") == Self.applicationID else { return nil }
            let stored = try connection.integer("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'schema_version'")
            guard let stored, stored != Int64(version) else { return nil }
            // All of it in the one file, so that the copy is whole whatever becomes of its companions.
            try connection.script("PRAGMA wal_checkpoint(TRUNCATE)")
            known = stored
        } catch {
            // A damaged or foreign file is for the opening to speak of.
            guard [.damaged, .foreign].contains(error.kind) else { throw error }
            return nil
        }
        let time = (DateText.text(Date()) ?? "").filter { $0.isNumber || $0 == "T" }.prefix(21)
        let aside = "\(path).schema-\(known)-\(time)Z"
        for suffix in ["", "-wal", "-shm"] where rename(path + suffix, aside + suffix) != 0 && errno != ENOENT {
            throw StoreError(
                .cannotOpen, "\(path) cannot be set aside: \(String(cString: strerror(errno)))",
                hint: "Move it away by hand.")
        }
        return aside
    }
}
