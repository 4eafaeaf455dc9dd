import Postgres

/// The index that a `CREATE INDEX CONCURRENTLY` makes or a `DROP INDEX CONCURRENTLY` removes.
struct ConcurrentIndex: Equatable {
    enum Action: Equatable {
        case create, drop
    }

    enum State: Equatable {
        case absent, invalid, valid
    }

    var action: Action
    /// The index's name as written, with its schema if one is written.
    var name: String
    /// The table as written; nil for a drop.
    var table: String?

    /// What the database knows of the index, seen with the session's search path.
    func state(_ connection: BlockingConnection) throws(DatabaseError) -> State {
        var parameters = ParameterList()
        parameters.append(name)
        let condition: String
        if let table {
            // An index lives in the schema of its table, and its name is written without one.
            parameters.append(table)
            condition = """
                i.indrelid = pg_catalog.to_regclass($2)
                    AND c.relname = (pg_catalog.parse_ident($1))[pg_catalog.array_length(pg_catalog.parse_ident($1), 1)]
                """
        } else {
            condition = "c.oid = pg_catalog.to_regclass($1)"
        }
        let found = try connection.query(
            """
            SELECT i.indisvalid FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
            WHERE \(condition)
            """, parameters)
        guard found.rowCount > 0 else { return .absent }
        return try found.bool(0, 0) ? .valid : .invalid
    }

    /// What to say of an index that a broken build left behind.
    func invalidProblem(_ file: MigrationFile, _ statement: SQLStatement) -> Problem {
        let schema = table.flatMap { table in
            table.lastIndex(of: ".").map { String(table[..<$0]) + "." }
        }
        return Problem(
            "the index \(name) is INVALID: its build was broken off", file: file.name,
            location: file.location(ofByte: statement.range.lowerBound),
            hint: "Mend what broke it, then drop it and run again: DROP INDEX CONCURRENTLY \(schema ?? "")\(name);")
    }
}

extension SQLStatement {
    /// Whether the statement is known to fail inside a transaction. Others are tried inside one.
    var refusesTransaction: Bool {
        begins(with: "VACUUM") || concurrentIndex != nil
            || (begins(with: "CREATE") || begins(with: "DROP") || begins(with: "REINDEX"))
                && words.contains("CONCURRENTLY")
    }

    /// Whether the statement changes settings of the session, and nothing else.
    var setsSession: Bool {
        switch words.first {
        case "SET":
            !begins(with: "SET", "LOCAL") && !begins(with: "SET", "TRANSACTION") && !begins(with: "SET", "CONSTRAINTS")
        case "RESET": true
        case "SELECT":
            begins(with: "SELECT", "SET_CONFIG", "(") || begins(with: "SELECT", "PG_CATALOG", ".", "SET_CONFIG", "(")
        default: false
        }
    }

    /// The index that the statement builds or drops concurrently, when it names one.
    var concurrentIndex: ConcurrentIndex? {
        var rest = words[...]
        func take(_ expected: String...) -> Bool {
            guard rest.starts(with: expected) else { return false }
            rest = rest.dropFirst(expected.count)
            return true
        }
        if take("DROP", "INDEX", "CONCURRENTLY") {
            _ = take("IF", "EXISTS")
            return name(&rest).map { ConcurrentIndex(action: .drop, name: $0) }
        }
        guard take("CREATE") else { return nil }
        _ = take("UNIQUE")
        guard take("INDEX", "CONCURRENTLY") else { return nil }
        _ = take("IF", "NOT", "EXISTS")
        guard rest.first != "ON", let index = name(&rest), take("ON") else { return nil }
        _ = take("ONLY")
        return name(&rest).map { ConcurrentIndex(action: .create, name: index, table: $0) }
    }

    /// A name with or without its schema, as SQL would fold it.
    func name(_ rest: inout ArraySlice<String>) -> String? {
        var name = ""
        while let part = rest.popFirst() {
            name += part.hasPrefix("\"") ? part : part.lowercased()
            guard rest.first == "." else { return name }
            rest.removeFirst()
            name += "."
        }
        return nil
    }
}
