import CSQLite
import Foundation

/// A store's file: opens it, tells it from other files, sets it aside when it is damaged.
struct StoreFile {
    /// `application_id` of a store: "IEUM".
    static let applicationID: Int64 = 0x4945_554D
    /// `user_version`: the format of the tables.
    static let format: Int64 = 3
    /// A file up to this size is looked through as a whole when it is opened; a greater one later, see ``inspect()``.
    static let checkedBytes: Int64 = 256 << 10
    /// The key in `meta` under which the store's own name is. It is looked for in the bytes of a file without a header.
    static let storeKey = "ieum.store"

    let path: String

    /// A file that was opened.
    struct Opened {
        var connection: SQLiteConnection
        var mark: StoreMark?
        /// The store's own name, for the mark.
        var store: UUID
        var damage: StoreDamage?
        var openFile: OpenFile?
        /// Whether it was too large to be looked through.
        var isLarge = false
    }

    /// Opens the file for writing, or makes it; a damaged one is set aside first.
    func open(busyMilliseconds: Int32) throws(StoreError) -> Opened {
        guard path != ":memory:" else {
            let connection = try connect(busyMilliseconds, isOurs: false)
            return Opened(connection: connection, store: try Self.store(in: connection) ?? UUID())
        }
        let (mark, isMarkNew) = try openMark()
        mark?.lock()
        defer { mark?.unlock() }
        do throws(StoreError) {
            return try open(busyMilliseconds, mark)
        } catch {
            if error.kind == .foreign, isMarkNew { _ = unlink(path + StoreMark.suffix) }
            throw error
        }
    }

    private func open(_ busyMilliseconds: Int32, _ mark: StoreMark?) throws(StoreError) -> Opened {
        let known = mark?.read()
        var damage: StoreDamage?
        if case .damaged(let reason) = look(known) {
            damage = try setAside(damaged(reason))
        }
        var connection: SQLiteConnection
        do throws(StoreError) {
            connection = try connect(busyMilliseconds, isOurs: isOurs(known))
            if damage == nil { damage = try missingSaves(connection, known) }
        } catch {
            guard error.kind == .damaged else { throw error }
            damage = try setAside(error)
            connection = try connect(busyMilliseconds, isOurs: true)
        }
        let opened = Opened(
            connection: connection, mark: mark, store: try Self.store(in: connection) ?? UUID(), damage: damage,
            openFile: OpenFile(path), isLarge: try Self.size(of: connection) > Self.checkedBytes)
        mark?.write(StoreMark.Content(store: opened.store, change: try Self.lastChange(in: connection)))
        return opened
    }

    /// Another connection to the file, for reading.
    func openReader(busyMilliseconds: Int32) throws(StoreError) -> SQLiteConnection {
        // Read and write: a reader of a WAL may have to make the shared memory anew.
        let connection = try SQLiteConnection(
            path: path, flags: SQLITE_OPEN_READWRITE, busyMilliseconds: busyMilliseconds)
        try connection.script("PRAGMA query_only = ON")
        return connection
    }

    /// Looks through the whole file, and takes note of damage for the next opening.
    func inspect(_ connection: SQLiteConnection) throws(StoreError) {
        guard try connection.text("PRAGMA quick_check(1)") != "ok" else { return }
        suspectDamage()
    }

    /// Notes that damage was met, so that the next opening looks through the whole file.
    func suspectDamage() {
        guard path != ":memory:" else { return }
        let descriptor = Glibc.open(path + suspicion, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        if descriptor >= 0 { close(descriptor) }
    }

    /// Whether damage was met.
    var isSuspected: Bool { access(path + suspicion, F_OK) == 0 }

    /// The same as an expression; NULL: there is none.
    static let lastChange = "(SELECT max(change) FROM games WHERE span = (SELECT max(span) FROM games))"

    /// The number of the last change that was made.
    static func lastChange(in connection: SQLiteConnection) throws(StoreError) -> Int64 {
        try connection.integer("SELECT \(lastChange)") ?? 0
    }

    private static func size(of connection: SQLiteConnection) throws(StoreError) -> Int64 {
        let pages = try connection.integer("PRAGMA page_count") ?? 0
        return pages.multipliedReportingOverflow(by: try connection.integer("PRAGMA page_size") ?? 0).partialValue
    }

    private var suspicion: String { "-damaged" }

    /// The mark, which is made only beside what is, or is to be, a store.
    private func openMark() throws(StoreError) -> (mark: StoreMark?, isNew: Bool) {
        if let mark = StoreMark(of: path, makes: false) { return (mark, false) }
        if case .foreign(let reason) = look(nil) { throw foreign(reason) }
        return (StoreMark(of: path, makes: true), true)
    }

    private func connect(_ busyMilliseconds: Int32, isOurs: Bool) throws(StoreError) -> SQLiteConnection {
        if path != ":memory:" {
            if case .foreign(let reason) = look(isOurs ? StoreMark.Content(store: UUID(), change: 0) : nil) {
                throw foreign(reason)
            }
            // SQLite gives the log and the shared memory the file's mode: nobody else's business what a player plays.
            let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            if descriptor >= 0 { close(descriptor) }
        }
        let connection = try SQLiteConnection(
            path: path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, busyMilliseconds: busyMilliseconds)
        guard sqlite3_db_readonly(connection.handle, "main") != 1 else {
            throw StoreError(sqlite: SQLITE_READONLY, message: nil, path: path, context: "open")
        }
        let (id, isNew) = try identity(connection, isOurs: isOurs)
        guard id == Self.applicationID || isNew else { throw foreign("it is another program's database") }
        let format = try connection.integer("PRAGMA user_version") ?? 0
        guard format <= Self.format else {
            throw StoreError(
                .newerFormat, "\(path) has format \(format), and this library knows formats up to \(Self.format)",
                hint: "Update the app. The file was left as it is.")
        }
        try connection.script("PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL")
        if isNew || format < Self.format { try makeTables(connection) }
        try check(connection)
        return connection
    }

    /// Whose database it is, and whether there is nothing in it yet.
    private func identity(
        _ connection: SQLiteConnection, isOurs: Bool
    ) throws(StoreError) -> (id: Int64, isNew: Bool) {
        do throws(StoreError) {
            let id = try connection.integer("PRAGMA application_id") ?? 0
            guard id != Self.applicationID else { return (id, false) }
            let objects = try connection.integer("SELECT count(*) FROM sqlite_master") ?? 0
            return (id, id == 0 && objects == 0)
        } catch {
            // Somebody else's database may be damaged, too: that is not ours to set aside.
            guard error.kind != .damaged || isOurs else {
                throw foreign("it is a damaged database of nobody knows whom")
            }
            throw error
        }
    }

    /// Looks for damage: through the whole file if it is small or suspected, else where the store begins to read.
    private func check(_ connection: SQLiteConnection) throws(StoreError) {
        let isSuspected = path != ":memory:" && isSuspected
        let size = try Self.size(of: connection)
        if isSuspected || size <= Self.checkedBytes {
            let verdict = try connection.text("PRAGMA quick_check(1)")
            guard verdict == "ok" else { throw damaged(verdict ?? "no answer") }
        }
        for column in [
            "SELECT key, value FROM meta LIMIT 1",
            """
            SELECT collection, id, change, span, timestamp, schema, saved, stamp, base, device, unsent, state FROM games
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
        if isSuspected { _ = unlink(path + suspicion) }
    }

    /// Compares the file with its mark. Where saves are missing, nothing that is there is given up; but the pages may be of
    /// different moments, and so the whole file is looked through, and the server's changes are to be read from the start.
    private func missingSaves(
        _ connection: SQLiteConnection, _ mark: StoreMark.Content?
    ) throws(StoreError) -> StoreDamage? {
        guard let mark, try Self.store(in: connection) == mark.store else { return nil }
        let last = try Self.lastChange(in: connection)
        guard last < mark.change else { return nil }
        let verdict = try connection.text("PRAGMA integrity_check(1)")
        guard verdict == "ok" else { throw damaged(verdict ?? "no answer") }
        let log = path + "-wal"
        let copy = asideName + "-wal"
        let isKept = access(log, F_OK) == 0 && (try? FileManager.default.copyItem(atPath: log, toPath: copy)) != nil
        try connection.run("UPDATE meta SET value = '0' WHERE key = 'cursor'")
        return StoreDamage(
            extent: .lastSaves, message: "\(path) ends at change \(last), and had \(mark.change)",
            copy: isKept ? URL(fileURLWithPath: copy) : nil)
    }

    private static func store(in connection: SQLiteConnection) throws(StoreError) -> UUID? {
        try connection.text("SELECT value FROM meta WHERE key = ?", .text(storeKey)).flatMap { UUID(uuidString: $0) }
    }

    private func foreign(_ reason: String) -> StoreError {
        StoreError(
            .foreign, "\(path) is not a store of games: \(reason)", hint: "It was left as it is. Name another file.")
    }

    private func damaged(_ reason: String) -> StoreError {
        StoreError(sqlite: SQLITE_CORRUPT, message: reason, path: path, context: "open")
    }

    private var asideName: String {
        let time = (DateText.text(Date()) ?? "").filter { $0.isNumber || $0 == "T" }.prefix(21)
        return "\(path).damaged-\(time)Z"
    }

    /// Renames the file and what belongs to it. The mark's lock is held: no other opening is in between.
    private func setAside(_ error: StoreError) throws(StoreError) -> StoreDamage {
        let aside = asideName
        guard rename(path, aside) == 0 || errno == ENOENT else {
            throw StoreError(
                .damaged, "\(path) is damaged, and cannot be set aside: \(String(cString: strerror(errno)))",
                hint: "Move it away by hand.")
        }
        for suffix in ["-wal", "-shm"] { _ = rename(path + suffix, aside + suffix) }
        _ = unlink(path + suspicion)
        return StoreDamage(extent: .wholeFile, message: error.message, copy: URL(fileURLWithPath: aside))
    }
}
