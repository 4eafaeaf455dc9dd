import Postgres

extension Migrator {
    /// What a rehearsal found.
    public struct Rehearsal: Equatable, Sendable {
        /// A file that could not be rehearsed.
        public struct Skipped: Equatable, Sendable {
            /// Its name.
            public var name: String
            /// Why.
            public var reason: String
        }

        /// The files that ran, in order.
        public var passed: [String] = []
        /// The files that were left out.
        public var skipped: [Skipped] = []
    }

    /// What `up` would run, without taking the lock or changing anything. Throws as `up` would.
    public func pending(to target: Version? = nil) throws(MigrationError) -> [MigrationFile] {
        let control = try sessions.openControl()
        let plan = try plan(locate(control), control, to: target)
        try scripts(of: plan)
        return plan.steps.map(\.file)
    }

    /// Runs all pending files in one transaction and rolls it back.
    ///
    /// Files without a transaction cannot be rehearsed and are skipped. The files hold their locks until the end, so this is for a
    /// copy of the database, or a quiet hour.
    public func rehearse(to target: Version? = nil) throws(MigrationError) -> Rehearsal {
        try locked { control, table throws(MigrationError) in
            let plan = try plan(table, control, to: target)
            let scripts = try scripts(of: plan)
            var result = Rehearsal()
            guard let first = plan.steps.first else { return result }
            let work = try sessions.openWork(for: first.file) { notice in
                report(.notice(file: "rehearsal", severity: notice.severity, message: notice.message))
            }
            try sessions.translating { () throws(DatabaseError) in try work.execute("BEGIN") }
            for (step, script) in zip(plan.steps, scripts) { try rehearse(step.file, script, work, &result) }
            return result
        }
    }

    private func rehearse(
        _ file: MigrationFile, _ script: SQLScript, _ work: BlockingConnection, _ result: inout Rehearsal
    ) throws(MigrationError) {
        guard file.mode == .transaction else {
            result.skipped.append(Rehearsal.Skipped(name: file.name, reason: "it runs without a transaction"))
            return
        }
        try sessions.translating { () throws(DatabaseError) in try work.execute("SAVEPOINT rehearsal") }
        do throws(DatabaseError) {
            try options.interruption.cancelling(work) { () throws(DatabaseError) in
                try work.execute(String(decoding: file.bytes, as: UTF8.self))
                // What COMMIT would check, undone so that deferred constraints are deferred for the next file too.
                try work.execute("SAVEPOINT rehearsal_end; SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK TO rehearsal_end")
            }
        } catch {
            if error.sqlState?.rawValue == "55P04" {
                try sessions.translating { () throws(DatabaseError) in try work.execute("ROLLBACK TO rehearsal") }
                let reason = "it uses an enum value that a pending file adds, which takes two transactions"
                result.skipped.append(Rehearsal.Skipped(name: file.name, reason: reason))
                return
            }
            var failed = FileFailure(file: file, script: script, options: options).error(error)
            if failed.kind == .file, !result.skipped.isEmpty {
                let names = result.skipped.map(\.name).joined(separator: ", ")
                failed.problems.append(Problem("it may need what was skipped: \(names)", file: file.name))
            }
            throw failed
        }
        // The next file begins as in a fresh session, as near as one transaction allows.
        try sessions.translating { () throws(DatabaseError) in
            try FileRunner.takeBack(work)
            try work.execute("RESET ALL; DISCARD TEMP; DISCARD SEQUENCES")
        }
        result.passed.append(file.name)
    }
}
