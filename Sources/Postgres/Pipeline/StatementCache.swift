/// What one session has prepared, and with which text and types.
struct StatementCache {
    private struct Entry {
        var sql: String
        var types: [PostgresType]
        var isSent = false
        var isConfirmed = false
    }

    private var entries: [String: Entry] = [:]
    private var failures: [String: DatabaseError] = [:]

    /// Takes note of a statement, with its own types or those that it is first used with, and says why an execution of
    /// it cannot be sent, if so: the server would read the bytes as other types than they are.
    mutating func admit(_ statement: Statement, _ parameters: ParameterList) -> DatabaseError? {
        if let problem = parameters.problem { return problem }
        guard let entry = entries[statement.name] else {
            let types = statement.parameterTypes.isEmpty ? parameters.types : statement.parameterTypes
            guard parameters.match(types) else { return Self.mismatch(statement, parameters, types) }
            entries[statement.name] = Entry(sql: statement.sql, types: types)
            return nil
        }
        guard entry.sql == statement.sql else {
            return DatabaseError(.protocol, "two statements are named \(statement.name)")
        }
        return parameters.match(entry.types) ? nil : Self.mismatch(statement, parameters, entry.types)
    }

    private static func mismatch(
        _ statement: Statement, _ parameters: ParameterList, _ types: [PostgresType]
    ) -> DatabaseError {
        let wanted = types.map { "\($0.rawValue)" }.joined(separator: ", ")
        let given = parameters.types.map { "\($0.rawValue)" }.joined(separator: ", ")
        return DatabaseError(
            .protocol, "statement \(statement.name) takes parameters of the types \(wanted) and was given \(given)")
    }

    /// The types to prepare an admitted statement with, once.
    mutating func typesToPrepare(_ name: String) -> [PostgresType]? {
        guard let entry = entries[name], !entry.isSent else { return nil }
        entries[name]?.isSent = true
        failures[name] = nil
        return entry.types
    }

    func isConfirmed(_ name: String) -> Bool {
        entries[name]?.isConfirmed ?? false
    }

    mutating func confirm(_ name: String) {
        entries[name]?.isConfirmed = true
    }

    /// Forgets a statement that could not be prepared, so that its next use tries again, and keeps the reason for the
    /// executions that are on their way already.
    mutating func fail(_ name: String, _ failure: DatabaseError) {
        entries[name] = nil
        failures[name] = failure
    }

    func failure(_ name: String) -> DatabaseError? {
        failures[name]
    }
}
