import Postgres

/// Files without a transaction: statement by statement, each recorded, resumed after the last that is done.
///
/// A statement that can run inside a transaction is committed together with the record of it, so that it is never run twice. One
/// that cannot (`CREATE INDEX CONCURRENTLY`, `VACUUM`, a `DO` that commits) is announced in the history before it is sent and
/// recorded after; a run that finds one announced looks at the database to tell whether it was done.
extension FileRunner {
    func runStatements(from resuming: StatementProgress?, since start: ContinuousClock.Instant) throws(MigrationError) {
        let statements = script.statements
        var progress = resuming ?? StatementProgress()
        let work = try workSessions.take(for: file)
        if resuming == nil {
            try sessions.translating { () throws(DatabaseError) in
                try history.insert(file, state: .running, mode: .noTransaction, work)
            }
        } else {
            try restoreSettings(statements.prefix(progress.count), work)
        }
        for (index, statement) in statements.enumerated().dropFirst(progress.count) {
            try options.interruption.check()
            // A DISCARD ALL in the file drops the registration; take it anew.
            try workSessions.lock.admit(work)
            let offset = statement.range.lowerBound
            report(
                .statementStarted(
                    file: file.name, number: index + 1, of: statements.count, line: file.location(ofByte: offset).line))
            if try !isDone(statement, progress, work) {
                try run(statement, &progress, work)
            } else {
                try record(statement, &progress, work)
            }
        }
        try sessions.translating { () throws(DatabaseError) in
            try Self.takeBack(work)
            try history.finish(file, milliseconds: (ContinuousClock.now - start).milliseconds, work)
        }
        workSessions.giveBack(work, isPlain: false)
    }

    private func text(_ statement: SQLStatement) -> String {
        String(decoding: file.bytes[statement.range], as: UTF8.self)
    }

    /// Settings that statements already done had made for the session hold for the rest of the file, in a new session too.
    private func restoreSettings(_ done: some Sequence<SQLStatement>, _ work: BlockingConnection) throws(MigrationError)
    {
        for statement in done where statement.setsSession {
            do throws(DatabaseError) {
                try work.execute(text(statement))
            } catch {
                throw failure(error, sentFrom: statement.range.lowerBound)
            }
        }
    }

    private func run(
        _ statement: SQLStatement, _ progress: inout StatementProgress, _ work: BlockingConnection
    ) throws(MigrationError) {
        if !statement.refusesTransaction, try runInTransaction(statement, &progress, work) { return }
        var announced = progress
        announced.inFlight = text(statement)
        try sessions.translating { () throws(DatabaseError) in try writing(announced, work) }
        do throws(DatabaseError) {
            try options.interruption.cancelling(work) { () throws(DatabaseError) in try work.execute(text(statement)) }
        } catch {
            var failed = failure(error, sentFrom: statement.range.lowerBound)
            if case .interrupted(let signal) = failed.kind {
                failed = .interrupted(by: signal, "the statement under way was broken off")
            }
            if error.kind == .server {
                // It surely failed; nothing is in flight. If this write fails too, the next run looks for itself.
                progress.inFlight = nil
                try? writing(progress, work)
            }
            if let index = statement.concurrentIndex, work.isConnected, let state = try? index.state(work),
                state == .invalid
            {
                failed.problems.append(index.invalidProblem(file, statement))
            }
            if let build = statement.unnamedBuild, work.isConnected, let left = try? build.leftovers(work) {
                failed.problems += left.map { UnnamedBuild.problem($0, file, statement) }
            }
            throw failed
        }
        if let index = statement.concurrentIndex {
            let state = try sessions.translating { () throws(DatabaseError) in try index.state(work) }
            if state == .invalid { throw MigrationError(.file, [index.invalidProblem(file, statement)]) }
        }
        try record(statement, &progress, work)
    }

    /// Runs a statement and records it in one transaction; false when it must run outside of one, and nothing was done.
    private func runInTransaction(
        _ statement: SQLStatement, _ progress: inout StatementProgress, _ work: BlockingConnection
    ) throws(MigrationError) -> Bool {
        try sessions.translating { () throws(DatabaseError) in try work.execute("BEGIN") }
        do throws(DatabaseError) {
            try options.interruption.cancelling(work) { () throws(DatabaseError) in try work.execute(text(statement)) }
        } catch {
            if error.sqlState == .activeSQLTransaction || error.sqlState?.rawValue == "2D000" {
                try sessions.translating { () throws(DatabaseError) in try work.execute("ROLLBACK") }
                return false
            }
            throw failure(error, sentFrom: statement.range.lowerBound)
        }
        var next = progress
        next.append(file.bytes[statement.range])
        try sessions.translating { () throws(DatabaseError) in try writing(next, work) }
        try commit(work)
        progress = next
        return true
    }

    private func record(
        _ statement: SQLStatement, _ progress: inout StatementProgress, _ work: BlockingConnection
    ) throws(MigrationError) {
        progress.append(file.bytes[statement.range])
        let recorded = progress
        try sessions.translating { () throws(DatabaseError) in try writing(recorded, work) }
    }

    /// Writes the record as the role of the login, and gives the session back the role that the file chose.
    private func writing(_ progress: StatementProgress, _ work: BlockingConnection) throws(DatabaseError) {
        let names = try work.query(
            "SELECT pg_catalog.current_setting('role'), session_user::text")
        let role = try names.text(0, 0)
        let session = try names.text(0, 1)
        try Self.takeBack(work)
        try history.update(file, progress, work)
        let login = try work.query("SELECT session_user::text").text(0, 0)
        if session != login {
            try work.execute("SET SESSION AUTHORIZATION \(BlockingConnection.quoteIdentifier(session))")
        }
        if role != "none" { try work.execute("SET ROLE \(BlockingConnection.quoteIdentifier(role))") }
    }

    /// Whether an earlier run did the statement and died before it could record it.
    private func isDone(
        _ statement: SQLStatement, _ progress: StatementProgress, _ work: BlockingConnection
    ) throws(MigrationError) -> Bool {
        if let build = statement.unnamedBuild {
            let left = try sessions.translating { () throws(DatabaseError) in try build.leftovers(work) }
            guard left.isEmpty else {
                throw MigrationError(.conflict, left.map { UnnamedBuild.problem($0, file, statement) })
            }
        }
        guard let index = statement.concurrentIndex else { return false }
        let state = try sessions.translating { () throws(DatabaseError) in try index.state(work) }
        if state == .invalid, index.action == .create {
            throw MigrationError(.conflict, [index.invalidProblem(file, statement)])
        }
        guard progress.inFlight == text(statement) else { return false }
        return state == (index.action == .create ? .valid : .absent)
    }
}
