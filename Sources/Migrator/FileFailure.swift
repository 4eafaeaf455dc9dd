import Postgres

/// Turns the server's errors about a file's SQL into ours: with the place in the file and what to do.
struct FileFailure {
    let file: MigrationFile
    let script: SQLScript
    let options: Migrator.Options

    /// What an error means. `offset` is the byte of the file at which the text that was sent begins; nil for an error that is not
    /// about a text of the file.
    func error(_ error: DatabaseError, sentFrom offset: Int? = 0) -> MigrationError {
        if let signal = options.interruption.signal, error.kind == .cancelled { return .interrupted(by: signal) }
        var problem = Problem(
            error.message, file: file.name, sqlState: error.sqlState?.rawValue, detail: error.detail,
            hint: [error.hint, hint(for: error)].compactMap(\.self).joined(separator: " "), context: error.context)
        if error.kind == .connection || error.kind == .timeout {
            problem.hint = "The file is rolled back unless it runs without a transaction. Run it again."
            return MigrationError(.connection, [problem])
        }
        if problem.hint?.isEmpty == true { problem.hint = nil }
        if let offset, let place = place(of: error, from: offset) { problem.location = file.location(ofByte: place) }
        return MigrationError(.file, [problem])
    }

    /// The byte that an error points at: the server's position, or else the statement that failed.
    private func place(of error: DatabaseError, from offset: Int) -> Int? {
        if let position = error.position {
            return SourceLocation.offset(ofScalar: position, from: offset, in: file.bytes)
        }
        guard let done = error.completedStatements else { return nil }
        let statements = script.statements.drop { $0.range.lowerBound < offset }
        return statements.dropFirst(done).first?.range.lowerBound
    }

    private func hint(for error: DatabaseError) -> String? {
        guard file.mode == .transaction else { return nil }
        switch error.sqlState?.rawValue {
        case "25001", "2D000":
            return "This statement cannot run inside a transaction. Give it a file of its own whose first line is "
                + "\"\(MigrationFile.noTransactionDirective)\"."
        case "55P04":
            return "A new value of an enum can be used only after its transaction: move the use to the next file."
        case "55P03":
            return "Somebody holds a lock on the table for longer than --lock-timeout; nothing of the file was kept."
        default:
            return nil
        }
    }
}
