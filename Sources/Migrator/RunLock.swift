import Postgres

/// The lock that one run at a time holds, on a session that does nothing else.
///
/// A file cannot drop it, as it could on its own session (`DISCARD ALL`, `pg_advisory_unlock_all`), and the idle session has no
/// snapshot that `CREATE INDEX CONCURRENTLY` would wait for. Each session that runs a file holds a second lock, shared, for as
/// long as it lives: a new run waits for it, so that it never works beside what a killed run left running on the server.
struct RunLock {
    /// The first keys of the two locks; the second is a hash of the history's name.
    private static let runClass: Int32 = 0x6D69_6772  // "migr"
    private static let workClass: Int32 = 0x6D69_6777  // "migw"
    private static let pollInterval = Duration.milliseconds(500)
    private static let reportInterval = Duration.seconds(5)

    private let connection: BlockingConnection
    private let sessions: Sessions
    private let key: Int32
    /// The server's process that holds the lock, as the server counts; a pooler tells another number.
    private let holder: Int32
    /// Whether a pooler stands between here and the server.
    let isBehindPooler: Bool

    /// Takes the lock, waiting as long as the options say.
    static func acquire(
        _ connection: BlockingConnection, table: HistoryTable, sessions: Sessions, report: (Event) -> Void
    ) throws(MigrationError) -> RunLock {
        let pid = try sessions.translating { () throws(DatabaseError) in try Sessions.serverProcess(connection) }
        let isBehindPooler = pid != connection.backendPID
        if isBehindPooler { try refuseSharedSession(connection, pid, sessions, report) }
        let hash =
            UInt32(Checksum(of: Array("\(table.schema).\(HistoryTable.name)".utf8)).hex.prefix(8), radix: 16) ?? 0
        let lock = RunLock(
            connection: connection, sessions: sessions, key: Int32(bitPattern: hash), holder: pid,
            isBehindPooler: isBehindPooler)
        try lock.poll(runClass, report)
        do throws(MigrationError) {
            try lock.poll(workClass, report)
            // Only the waiting mattered; the sessions of this run take it next.
            try lock.unlock(workClass)
        } catch {
            lock.release()
            throw error
        }
        return lock
    }

    /// Refuses a pooler that gives one session of the server to two of ours, as it does in transaction mode: no lock or setting
    /// holds through it. It is known by that; where that cannot be seen, a warning must do.
    private static func refuseSharedSession(
        _ connection: BlockingConnection, _ pid: Int32, _ sessions: Sessions, _ report: (Event) -> Void
    ) throws(MigrationError) {
        let other = try sessions.openControl()
        let (theirs, ours) = try sessions.translating { () throws(DatabaseError) in
            (try Sessions.serverProcess(other), try Sessions.serverProcess(connection))
        }
        guard theirs != pid, ours == pid else {
            throw MigrationError(
                .connection,
                "a pooler in transaction mode stands between here and the server: no lock holds through it",
                hint: "Connect to the server itself, or to a pool with pool_mode = session.")
        }
        report(
            .warning(
                "a pooler stands between here and the server. In transaction mode it would break the lock; "
                    + "better connect to the server itself."))
    }

    /// Gives the lock back. When that fails the session is gone, and the lock with it.
    func release() {
        try? unlock(Self.runClass)
    }

    /// Registers a session that is about to work, and makes sure that the lock is still held.
    func admit(_ work: BlockingConnection) throws(MigrationError) {
        let isHeld = try sessions.translating { () throws(DatabaseError) in
            let shared = try work.query(
                "SELECT pg_catalog.pg_try_advisory_lock_shared($1, $2)", keys(Self.workClass)
            ).bool(0, 0)
            // After the registration: who holds the lock now waits for this session before it works.
            var parameters = keys(Self.runClass)
            parameters.append(holder)
            let isHeld = try work.query(
                """
                SELECT EXISTS (
                    SELECT FROM pg_catalog.pg_locks l
                    WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.pid = $3
                        AND l.classid = ($1::bigint & 4294967295)::oid AND l.objid = ($2::bigint & 4294967295)::oid)
                """, parameters
            ).bool(0, 0)
            return shared && isHeld
        }
        guard isHeld, connection.isConnected else {
            throw MigrationError(
                .connection, "the session that held the lock was lost; stopped before the next file",
                hint: "What is applied stays applied. Run it again.")
        }
    }

    private func poll(_ lockClass: Int32, _ report: (Event) -> Void) throws(MigrationError) {
        let options = sessions.options
        let start = ContinuousClock.now
        var nextReport = Duration.zero
        while true {
            try options.interruption.check()
            let isMine = try sessions.translating { () throws(DatabaseError) in
                try connection.query("SELECT pg_catalog.pg_try_advisory_lock($1, $2)", keys(lockClass)).bool(0, 0)
            }
            if isMine { return }
            let waited = ContinuousClock.now - start
            let isLast = waited >= options.lockWait
            // A session that just ended lets go within milliseconds.
            let isEnding = lockClass == Self.workClass && waited < Self.pollInterval
            if isEnding {
                try options.interruption.wait(for: .milliseconds(20))
                continue
            }
            if isLast || waited >= nextReport {
                let found = try sessions.translating { () throws(DatabaseError) in
                    try holders(of: lockClass, connection).first
                }
                let holder = found ?? LockHolder(isLeftBehind: lockClass == Self.workClass)
                if isLast { throw Self.timeout(holder, after: options.lockWait) }
                report(.waiting(for: holder, since: waited))
                nextReport = waited + Self.reportInterval
            }
            let jitter = Duration.milliseconds(Int.random(in: -100...100))
            try options.interruption.wait(for: min(Self.pollInterval + jitter, options.lockWait - waited))
        }
    }

    private static func timeout(_ holder: LockHolder, after wait: Duration) -> MigrationError {
        let hint =
            holder.isLeftBehind
            ? holder.processID.map { "Let it end, or end it: SELECT pg_terminate_backend(\($0));" }
            : "Let it finish, or wait longer with --lock-wait."
        return MigrationError(
            .lockTimeout, "\(holder) holds the lock; waited \(wait.milliseconds / 1000) s for it", hint: hint)
    }

    private func unlock(_ lockClass: Int32) throws(MigrationError) {
        try sessions.translating { () throws(DatabaseError) in
            try connection.query("SELECT pg_catalog.pg_advisory_unlock($1, $2)", keys(lockClass))
        }
    }

    /// Who holds one of the locks, longest first. Of other roles' sessions only the process is visible.
    private func holders(of lockClass: Int32, _ connection: BlockingConnection) throws(DatabaseError) -> [LockHolder] {
        let found = try connection.query(
            """
            SELECT l.pid, a.application_name, COALESCE(a.state_change, a.backend_start)
            FROM pg_catalog.pg_locks l
            LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
            WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
                AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
                AND l.classid = ($1::bigint & 4294967295)::oid AND l.objid = ($2::bigint & 4294967295)::oid
            ORDER BY 3 NULLS LAST
            """, keys(lockClass))
        var holders: [LockHolder] = []
        for row in 0..<found.rowCount {
            holders.append(
                LockHolder(
                    processID: try found.int4(row, 0),
                    applicationName: try found.isNull(row, 1) ? nil : try found.text(row, 1),
                    since: try found.isNull(row, 2) ? nil : try found.microsecondsSince1970(row, 2),
                    isLeftBehind: lockClass == Self.workClass))
        }
        return holders
    }

    private func keys(_ lockClass: Int32) -> ParameterList {
        var parameters = ParameterList()
        parameters.append(lockClass)
        parameters.append(key)
        return parameters
    }
}

extension LockHolder {
    init(isLeftBehind: Bool) {
        self.init(processID: nil, applicationName: nil, since: nil, isLeftBehind: isLeftBehind)
    }
}
