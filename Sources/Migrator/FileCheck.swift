extension MigrationFile {
    /// What the text holds that cannot be run, found before anything is sent.
    func problems(in script: SQLScript) -> [Problem] {
        var faults = script.faults
        for statement in script.statements {
            if let fault = Self.fault(of: statement) { faults.append(fault) }
        }
        return faults.sorted { $0.offset < $1.offset }.map { fault in
            Problem(fault.message, file: name, location: location(ofByte: fault.offset), hint: fault.hint)
        }
    }

    private static func fault(of statement: SQLStatement) -> SQLScript.Fault? {
        switch statement.clientCopy {
        case .fromClient:
            return SQLScript.Fault(
                offset: statement.range.lowerBound, message: "COPY with data in the file cannot be run",
                hint: "Write INSERT statements, as pg_dump --inserts does, or load the data apart from the migrations.")
        case .toClient:
            return SQLScript.Fault(
                offset: statement.range.lowerBound, message: "COPY to the client cannot be run",
                hint: "Remove the statement; nobody is there to take the data.")
        case nil: break
        }
        guard let command = statement.transactionCommand else { return nil }
        return SQLScript.Fault(
            offset: statement.range.lowerBound,
            message: "\(command) in a migration: a file is run in a transaction of its own, or with none",
            hint:
                "Remove the statement. A file that begins with \"\(noTransactionDirective)\" runs without a transaction."
        )
    }
}

extension SQLStatement {
    /// The command's name when it begins or ends a transaction.
    var transactionCommand: String? {
        switch words.first {
        case "BEGIN", "ABORT", "END":
            return words.first
        case "START" where begins(with: "START", "TRANSACTION"):
            return "START TRANSACTION"
        case "PREPARE" where begins(with: "PREPARE", "TRANSACTION"):
            return "PREPARE TRANSACTION"
        case "COMMIT" where !begins(with: "COMMIT", "PREPARED"):
            return "COMMIT"
        case "ROLLBACK" where !begins(with: "ROLLBACK", "PREPARED"):
            let rest = words.dropFirst().drop { $0 == "WORK" || $0 == "TRANSACTION" }
            return rest.first == "TO" ? nil : "ROLLBACK"
        default:
            return nil
        }
    }
}
