import Postgres

/// Brings a database to the state that a set of files describes, and tells how far it is.
///
/// Every call opens its own sessions and blocks until it is done. Several programs may call at once: one works, the others wait
/// and then find nothing to do. It knows nothing of what the files are about.
public struct Migrator {
    /// The files.
    public let set: MigrationSet
    /// How it behaves.
    public let options: Options
    let sessions: Sessions
    let report: (Event) -> Void

    /// A migrator for a database.
    ///
    /// - Parameters:
    ///   - set: the files.
    ///   - database: libpq's connection string.
    ///   - options: how it behaves.
    ///   - report: is told what happens while it happens, on the calling thread.
    public init(
        set: MigrationSet, database: String, options: Options = Options(), report: @escaping (Event) -> Void = { _ in }
    ) {
        self.set = set
        self.options = options
        self.report = report
        sessions = Sessions(database: database, options: options)
    }

    /// What ``up(to:)`` did.
    public struct UpResult: Equatable, Sendable {
        /// One file that was applied.
        public struct Applied: Equatable, Sendable {
            /// Its name.
            public var name: String
            /// Its version.
            public var version: Version
            /// How it was run.
            public var mode: MigrationFile.Mode
            /// How long it took.
            public var milliseconds: Int64
        }

        /// The files in the order in which they were run; empty when there was nothing to do.
        public var applied: [Applied] = []
    }

    /// Applies what is pending, up to a version or all of it.
    ///
    /// Everything that forbids it is found before the first change and thrown at once. A file that fails leaves no trace; those
    /// before it stay applied.
    public func up(to target: Version? = nil) throws(MigrationError) -> UpResult {
        if let target { _ = try file(target) }
        let control = try sessions.openControl()
        let table = try locate(control)
        let first = try plan(table, control, to: target)
        if first.conflicts.isEmpty, first.steps.isEmpty { return UpResult() }

        try refuseReadOnly(control)
        let lock = try RunLock.acquire(control, table: table, sessions: sessions, report: report)
        let workSessions = WorkSessions(sessions: sessions, lock: lock, report: report)
        defer {
            workSessions.end()
            lock.release()
        }
        // Another run may have changed it while this one waited.
        let plan = try plan(table, control, to: target)
        let scripts = try scripts(of: plan)
        try sessions.translating { () throws(DatabaseError) in try table.prepare(control) }
        var result = UpResult()
        for (step, script) in zip(plan.steps, scripts) {
            let runner = FileRunner(
                file: step.file, script: script, sessions: sessions, workSessions: workSessions, history: writer(table),
                report: report)
            let milliseconds: Int64
            do throws(MigrationError) {
                milliseconds = try runner.run(resuming: step.resuming)
            } catch {
                var failure = error
                failure.applied = result.applied
                throw failure
            }
            result.applied.append(
                UpResult.Applied(
                    name: step.file.name, version: step.file.version, mode: step.file.mode, milliseconds: milliseconds))
        }
        return result
    }

    /// The state of every version, without waiting for a run that is under way and without changing anything.
    public func status() throws(MigrationError) -> Plan {
        let control = try sessions.openControl()
        return try plan(locate(control), control)
    }

    // MARK: - Steps that several commands share

    func locate(_ control: BlockingConnection) throws(MigrationError) -> HistoryTable {
        try sessions.translating { () throws(DatabaseError) in
            try HistoryTable.locate(options.historySchema, control)
        }
    }

    func plan(
        _ table: HistoryTable, _ control: BlockingConnection, to target: Version? = nil
    ) throws(MigrationError) -> Plan {
        let rows = try sessions.translating { () throws(DatabaseError) in try table.rows(of: set.name, control) }
        return Plan(
            set: set, history: rows, to: target, allowing: options.allowedOutOfOrder, command: options.command)
    }

    func writer(_ table: HistoryTable) -> HistoryWriter {
        HistoryWriter(table: table, set: set.name, applicationVersion: options.applicationVersion)
    }

    /// The files to run, cut into statements. Throws when the plan may not be run: all conflicts, and all that is wrong in the
    /// files.
    @discardableResult
    func scripts(of plan: Plan) throws(MigrationError) -> [SQLScript] {
        let scripts = plan.steps.map { SQLScript($0.file.bytes) }
        let faults = zip(plan.steps, scripts).flatMap { $0.file.problems(in: $1) }
        if !plan.conflicts.isEmpty { throw MigrationError(.conflict, plan.conflicts + faults) }
        if !faults.isEmpty { throw MigrationError(.file, faults) }
        return scripts
    }

    func refuseReadOnly(_ control: BlockingConnection) throws(MigrationError) {
        try sessions.translating { () throws(DatabaseError) in
            let found = try control.query(
                "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only') = 'on'")
            let isStandby = try found.bool(0, 0)
            let isReadOnly = try found.bool(0, 1)
            if isStandby || isReadOnly {
                throw DatabaseError(
                    .server, isStandby ? "the server is a standby, which takes no changes" : "the session is read-only",
                    sqlState: .readOnlySQLTransaction)
            }
        }
    }
}
