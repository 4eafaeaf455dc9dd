import Postgres

/// Runs one file on a session that shows nothing of others, and records it.
struct FileRunner {
    let file: MigrationFile
    let script: SQLScript
    let sessions: Sessions
    let workSessions: WorkSessions
    let history: HistoryWriter
    let report: (Event) -> Void

    var options: Migrator.Options { sessions.options }

    /// Runs the file and gives how long it took, in milliseconds.
    func run(resuming progress: StatementProgress?) throws(MigrationError) -> Int64 {
        try options.interruption.check()
        report(.started(file: file.name, mode: file.mode, resumingAt: progress.map { $0.count + 1 }))
        let start = ContinuousClock.now
        switch file.mode {
        case .transaction: try runInTransaction(since: start)
        case .noTransaction: try runStatements(from: progress, since: start)
        }
        let milliseconds = (ContinuousClock.now - start).milliseconds
        report(.applied(file: file.name, milliseconds: milliseconds))
        return milliseconds
    }

    // MARK: - In one transaction

    /// Tries the file until it got its locks, or as often as the options say.
    private func runInTransaction(since start: ContinuousClock.Instant) throws(MigrationError) {
        var pause = options.retryDelay
        var attempt = 1
        while true {
            do throws(MigrationError) {
                return try attemptTransaction(since: start)
            } catch {
                guard error.kind == .file, attempt < options.lockAttempts, let problem = error.problems.first,
                    problem.sqlState == SQLState.lockNotAvailable.rawValue
                        || problem.sqlState == SQLState.deadlockDetected.rawValue
                else { throw error }
                let jittered = pause * Double.random(in: 0.75...1.25)
                report(
                    .retrying(
                        file: file.name, attempt: attempt + 1, of: options.lockAttempts, pause: jittered,
                        problem: problem))
                try options.interruption.wait(for: jittered)
            }
            attempt += 1
            pause *= 2
        }
    }

    private func attemptTransaction(since start: ContinuousClock.Instant) throws(MigrationError) {
        let work = try workSessions.take(for: file)
        try sessions.translating { () throws(DatabaseError) in try work.execute("BEGIN") }
        let text = String(decoding: file.bytes, as: UTF8.self)
        do throws(DatabaseError) {
            try options.interruption.cancelling(work) { () throws(DatabaseError) in try work.execute(text) }
        } catch {
            throw failure(error)
        }
        guard work.transactionStatus == .inTransaction else {
            throw MigrationError(
                .file,
                [Problem("ended the transaction that it was run in", file: file.name, hint: "Remove its COMMIT.")])
        }
        try sessions.translating { () throws(DatabaseError) in
            try Self.takeBack(work)
            try history.insert(
                file, mode: .transaction, milliseconds: (ContinuousClock.now - start).milliseconds, work)
        }
        try commit(work)
        workSessions.giveBack(work, isPlain: script.isPlain(file.bytes))
    }

    /// Comes back to the role of the login, whatever the file set, so that the history can be written.
    static func takeBack(_ work: BlockingConnection) throws(DatabaseError) {
        try work.execute("RESET SESSION AUTHORIZATION; RESET ROLE; SET client_encoding = 'UTF8'")
    }

    /// Commits and judges by the answer: deferred constraints fail here, and a failed transaction answers ROLLBACK.
    func commit(_ work: BlockingConnection) throws(MigrationError) {
        let tag: String?
        do throws(DatabaseError) {
            tag = try options.interruption.cancelling(work) { () throws(DatabaseError) in
                try work.execute("COMMIT").last?.commandTag
            }
        } catch {
            var failed = failure(error, sentFrom: nil)
            if failed.kind == .connection {
                failed.problems = [
                    Problem(
                        "the connection was lost while \(file.name) was being committed: \(error.message)",
                        file: file.name,
                        hint: "Whether it is applied, the database knows: " + options.command("status"))
                ]
            }
            throw failed
        }
        guard tag == "COMMIT" else {
            throw MigrationError(.file, [Problem("was rolled back at its end: it failed inside", file: file.name)])
        }
    }

    /// What an error means. `offset` is the byte of the file at which the text that was sent begins.
    func failure(_ error: DatabaseError, sentFrom offset: Int? = 0) -> MigrationError {
        FileFailure(file: file, script: script, options: options).error(error, sentFrom: offset)
    }
}
