import CSQLite
import Foundation

/// A store's file: opens it, tells it from other files, sets it aside when it is damaged.
struct StoreFile {
    /// `application_id` of a store: "IEUM".
    static let applicationID: Int64 = 0x4945_554D
    /// `user_version`: the format of the tables.
    static let format: Int64 = 1
    /// A file up to this size is looked through as a whole when it is opened.
    static let checkedBytes: Int64 = 4 << 20

    /// The tables; those of the sync engine are its own.
    static let schema = """
        CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
        CREATE TABLE games (
            collection TEXT NOT NULL, id TEXT NOT NULL, state BLOB, timestamp INTEGER NOT NULL,
            schema INTEGER NOT NULL, saved INTEGER NOT NULL, stamp INTEGER, base INTEGER, device BLOB,
            unsent INTEGER NOT NULL, change INTEGER NOT NULL, PRIMARY KEY (collection, id));
        CREATE INDEX games_latest ON games (collection, timestamp, id, change) WHERE state IS NOT NULL;
        CREATE INDEX games_changed ON games (collection, change);
        INSERT INTO meta (key, value) VALUES ('change', 0);

        """

    let path: String

    /// Opens the file for writing, or makes it; a damaged one is set aside first.
    /// - Returns: the connection, and where the damaged file went.
    func open(busyMilliseconds: Int32) throws(StoreError) -> (SQLiteConnection, aside: String?) {
        let found = inode
        do throws(StoreError) {
            return (try connect(busyMilliseconds), nil)
        } catch {
            guard error.kind == .damaged, path != ":memory:" else { throw error }
            // Another process may have set it aside, and begun a new one, by now.
            guard found == inode else { return (try connect(busyMilliseconds), nil) }
            let aside = try setAside()
            return (try connect(busyMilliseconds), aside)
        }
    }

    /// Another connection to the file, for reading.
    func openReader(busyMilliseconds: Int32) throws(StoreError) -> SQLiteConnection {
        // Read and write: a reader of a WAL may have to make the shared memory anew.
        let connection = try SQLiteConnection(
            path: path, flags: SQLITE_OPEN_READWRITE, busyMilliseconds: busyMilliseconds)
        try connection.script("PRAGMA query_only = ON")
        return connection
    }

    /// Notes that damage was met, so that the next opening looks through the whole file.
    func suspectDamage() {
        _ = FileManager.default.createFile(atPath: path + suspicion, contents: nil)
    }

    private var inode: UInt64? {
        var status = stat()
        return stat(path, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    private var suspicion: String { "-damaged" }

    private func connect(_ busyMilliseconds: Int32) throws(StoreError) -> SQLiteConnection {
        try refuseOtherFiles()
        let connection = try SQLiteConnection(
            path: path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, busyMilliseconds: busyMilliseconds)
        guard sqlite3_db_readonly(connection.handle, "main") != 1 else {
            throw StoreError(sqlite: SQLITE_READONLY, message: nil, path: path, context: "open")
        }
        try connection.script("PRAGMA synchronous = FULL")
        let id = try connection.integer("PRAGMA application_id") ?? 0
        let objects = try connection.integer("SELECT count(*) FROM sqlite_master")
        let isNew = id == 0 && objects == 0
        guard id == Self.applicationID || isNew else { throw foreign("it is another program's database") }
        let format = try connection.integer("PRAGMA user_version") ?? 0
        guard format <= Self.format else {
            throw StoreError(
                .newerFormat, "\(path) has format \(format), and this library knows formats up to \(Self.format)",
                hint: "Update the app. The file was left as it is.")
        }
        try connection.script("PRAGMA journal_mode = WAL")
        if isNew { try makeTables(connection) }
        try check(connection)
        return connection
    }

    private func makeTables(_ connection: SQLiteConnection) throws(StoreError) {
        try connection.script("BEGIN IMMEDIATE")
        // Another process may have been faster.
        if try connection.integer("PRAGMA application_id") != Self.applicationID {
            try connection.script(Self.schema + SyncTables.schema)
            try connection.script(
                "PRAGMA application_id = \(Self.applicationID); PRAGMA user_version = \(Self.format)")
        }
        try connection.script("COMMIT")
    }

    /// Looks for damage: through the whole file if it is small or suspected, else where the store begins to read.
    private func check(_ connection: SQLiteConnection) throws(StoreError) {
        let isSuspected = FileManager.default.fileExists(atPath: path + suspicion)
        let size =
            (try connection.integer("PRAGMA page_count") ?? 0) * (try connection.integer("PRAGMA page_size") ?? 0)
        if isSuspected || size <= Self.checkedBytes {
            let verdict = try connection.text("PRAGMA quick_check(1)")
            guard verdict == "ok" else { throw damaged(verdict ?? "no answer") }
        }
        for column in [
            "SELECT key, value FROM meta LIMIT 1",
            """
            SELECT collection, id, state, timestamp, schema, saved, stamp, base, device, unsent, change FROM games
             LIMIT 1
            """,
        ] {
            do throws(StoreError) {
                try connection.run(column)
            } catch {
                // A column or table that is not there: the catalogue is damaged.
                throw error.sqlite?.code == SQLITE_ERROR ? damaged(error.message) : error
            }
        }
        if isSuspected { try? FileManager.default.removeItem(atPath: path + suspicion) }
    }

    /// Refuses what is no database, so that nobody's photo is set aside.
    private func refuseOtherFiles() throws(StoreError) {
        guard path != ":memory:", let file = FileHandle(forReadingAtPath: path) else { return }
        defer { try? file.close() }
        guard let head = try? file.read(upToCount: 100), !head.isEmpty else { return }
        let bytes = [UInt8](head)
        if bytes.starts(with: Array("SQLite format 3\0".utf8)) { return }
        let id = bytes.count >= 72 ? bytes[68..<72].reduce(0) { $0 << 8 | Int64($1) } : 0
        // A store whose first bytes were hit, or whose first page was never written.
        if id == Self.applicationID || bytes.allSatisfy({ $0 == 0 }) { throw damaged("its header is") }
        throw foreign("it is no SQLite database")
    }

    private func foreign(_ reason: String) -> StoreError {
        StoreError(
            .foreign, "\(path) is not a store of games: \(reason)", hint: "It was left as it is. Name another file.")
    }

    private func damaged(_ reason: String) -> StoreError {
        StoreError(sqlite: SQLITE_CORRUPT, message: reason, path: path, context: "open")
    }

    /// Renames the file and what belongs to it.
    private func setAside() throws(StoreError) -> String {
        let time = (DateText.text(Date()) ?? "").filter { $0.isNumber || $0 == "T" }.prefix(21)
        let aside = "\(path).damaged-\(time)Z"
        guard rename(path, aside) == 0 || errno == ENOENT else {
            throw StoreError(
                .damaged, "\(path) is damaged, and cannot be set aside: \(String(cString: strerror(errno)))",
                hint: "Move it away by hand.")
        }
        for suffix in ["-wal", "-shm"] { _ = rename(path + suffix, aside + suffix) }
        _ = unlink(path + suspicion)
        return aside
    }
}
