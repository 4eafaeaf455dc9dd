import Postgres

/// The sessions that run the files of one `up`, one after the other.
///
/// Each file finds a session as if it were new. A new one costs the server a process, so one is kept behind a file of plain
/// statements: `DISCARD ALL` takes back what such a file can leave in it, and start-up options are what it comes back to. It is
/// trusted only when all its settings, its role included, are then what they were when it was new. After everything else, and
/// after every failure, the next file gets a new session.
final class WorkSession {
    private let sessions: Sessions
    private let lock: RunLock
    private let report: (Event) -> Void
    private var kept: Kept?
    /// The settings of the session that was handed out last, when it was new.
    private var settings: String?
    /// Names the file that runs, for the notices.
    private let current = CurrentFile()
    /// How many sessions were opened.
    private(set) var openedCount = 0

    private struct Kept {
        var connection: BlockingConnection
        var settings: String
    }

    private final class CurrentFile {
        var name = ""
    }

    init(sessions: Sessions, lock: RunLock, report: @escaping (Event) -> Void) {
        self.sessions = sessions
        self.lock = lock
        self.report = report
    }

    /// A session for a file, as good as new and admitted by the lock. It is used once, unless ``keep(_:after:)`` is told of it.
    func open(for file: MigrationFile) throws(MigrationError) -> BlockingConnection {
        current.name = file.name
        let earlier = kept
        kept = nil
        if let earlier, file.mode == .transaction, Self.renew(earlier) {
            try lock.admit(earlier.connection)
            settings = earlier.settings
            return earlier.connection
        }
        let connection = try sessions.openWork(for: file) { [current, report] notice in
            report(.notice(file: current.name, severity: notice.severity, message: notice.message))
        }
        openedCount += 1
        settings = try sessions.translating { () throws(DatabaseError) in try Self.settings(of: connection) }
        try lock.admit(connection)
        return connection
    }

    /// Keeps the session for the next file when the one that it ran, to its end, lets that be.
    func keep(_ connection: BlockingConnection, after file: MigrationFile) {
        guard let settings, file.mode == .transaction, file.leavesSessionClean else { return }
        kept = Kept(connection: connection, settings: settings)
    }

    /// Makes a session as it was when it was new; false when it is not, or is lost.
    private static func renew(_ kept: Kept) -> Bool {
        do throws(DatabaseError) {
            try kept.connection.execute("DISCARD ALL")
            return try settings(of: kept.connection) == kept.settings
        } catch {
            return false
        }
    }

    /// A hash of all settings. A name that a program made up (`app.tenant`) stays known, empty, after `DISCARD ALL`; a default role
    /// of the login (`ALTER ROLE … SET role`) does not come back.
    private static func settings(of connection: BlockingConnection) throws(DatabaseError) -> String {
        try connection.query(
            """
            SELECT pg_catalog.md5(pg_catalog.string_agg(
                s.name OPERATOR(pg_catalog.||) '=' OPERATOR(pg_catalog.||) COALESCE(s.setting, ''), ',' ORDER BY s.name))
                OPERATOR(pg_catalog.||) current_user::text OPERATOR(pg_catalog.||) session_user::text
                OPERATOR(pg_catalog.||) pg_catalog.current_setting('role')
            FROM pg_catalog.pg_show_all_settings() s
            """
        ).text(0, 0)
    }
}

extension MigrationFile {
    /// Whether `DISCARD ALL` takes back all that the file may leave in its session; false where that cannot be told.
    var leavesSessionClean: Bool {
        let script = SQLScript(bytes)
        guard script.faults.isEmpty, script.statements.allSatisfy(\.leavesSessionClean) else { return false }
        // The seed of random() is no setting that could be compared.
        let text = String(decoding: bytes, as: UTF8.self).lowercased()
        return !["setseed", "set_config", "advisory", "dblink", "u&\""].contains { text.contains($0) }
    }
}

extension SQLStatement {
    private static let objects: Set<String> = [
        "AGGREGATE", "CAST", "COLLATION", "CONSTRAINT", "DOMAIN", "FUNCTION", "INDEX", "MATERIALIZED", "OPERATOR",
        "POLICY",
        "PROCEDURE", "ROUTINE", "RULE", "SCHEMA", "SEQUENCE", "STATISTICS", "TABLE", "TRIGGER", "TYPE", "UNIQUE",
        "UNLOGGED",
        "VIEW",
    ]

    /// Whether it is a plain definition or change of data. Unknown ones are not, nor those that settings or code of others hang
    /// on: `SET`, `LOAD`, `DO`, `CALL`, `SELECT`, `LISTEN`, `CREATE EXTENSION`, `ALTER ROLE` and the like.
    fileprivate var leavesSessionClean: Bool {
        switch words.first {
        case "INSERT", "UPDATE", "DELETE", "COMMENT", "TRUNCATE": return true
        case "CREATE":
            let replaces = words.dropFirst().starts(with: ["OR", "REPLACE"])
            return words.dropFirst(replaces ? 3 : 1).first.map(Self.objects.contains) ?? false
        case "ALTER", "DROP": return words.dropFirst().first.map(Self.objects.contains) ?? false
        default: return false
        }
    }
}
