import Postgres

/// A statement that builds indexes side by side with their users under names that the server chooses: `REINDEX … CONCURRENTLY`,
/// and a `CREATE INDEX CONCURRENTLY` without a name. Broken off, it leaves INVALID ones that a second try does not take away.
enum UnnamedBuild: Equatable {
    case create(table: String)
    case reindexIndex(String)
    case reindexTable(String)
    case reindexMany

    /// The INVALID indexes that are there, as SQL names them; not those that somebody is building now.
    func leftovers(_ connection: BlockingConnection) throws(DatabaseError) -> [String] {
        var parameters = ParameterList()
        let condition: String
        switch self {
        case .create(let table):
            parameters.append(table)
            condition = "i.indrelid = pg_catalog.to_regclass($1)"
        case .reindexIndex(let index):
            parameters.append(index)
            condition = """
                c.relname ~ '_cc(new|old)[0-9]*$' AND i.indrelid = (
                    SELECT o.indrelid FROM pg_catalog.pg_index o WHERE o.indexrelid = pg_catalog.to_regclass($1))
                """
        case .reindexTable(let table):
            parameters.append(table)
            condition = """
                c.relname ~ '_cc(new|old)[0-9]*$' AND i.indrelid IN (
                    SELECT t.oid FROM pg_catalog.pg_class t WHERE t.oid = pg_catalog.to_regclass($1)
                    UNION SELECT t.reltoastrelid FROM pg_catalog.pg_class t WHERE t.oid = pg_catalog.to_regclass($1)
                    UNION SELECT p.relid FROM pg_catalog.pg_partition_tree(pg_catalog.to_regclass($1)) p)
                """
        case .reindexMany:
            condition = "c.relname ~ '_cc(new|old)[0-9]*$'"
        }
        let found = try connection.query(
            """
            SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
            FROM pg_catalog.pg_index i
            JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid AND c.relkind = 'i'
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE NOT i.indisvalid AND \(condition) AND NOT EXISTS (
                SELECT FROM pg_catalog.pg_stat_progress_create_index b WHERE b.index_relid = i.indexrelid)
            ORDER BY 1
            """, parameters)
        var names: [String] = []
        for row in 0..<found.rowCount { names.append(try found.text(row, 0)) }
        return names
    }

    /// What to say of an index that a broken build left behind.
    static func problem(_ index: String, _ file: MigrationFile, _ statement: SQLStatement) -> Problem {
        Problem(
            "the index \(index) is INVALID: a build was broken off", file: file.name,
            location: file.location(ofByte: statement.range.lowerBound),
            hint: "Mend what broke it, then drop it and run again: DROP INDEX CONCURRENTLY \(index);")
    }
}

extension SQLStatement {
    /// The indexes that the statement builds under names of the server's choosing; nil when it builds none.
    var unnamedBuild: UnnamedBuild? {
        guard words.contains("CONCURRENTLY") else { return nil }
        if words.first == "CREATE", concurrentIndex == nil,
            let on = words.firstIndex(of: "ON"),
            words[..<on].starts(with: ["CREATE", "INDEX", "CONCURRENTLY"])
                || words[..<on].starts(with: ["CREATE", "UNIQUE", "INDEX", "CONCURRENTLY"])
        {
            var rest = words[(on + 1)...]
            if rest.first == "ONLY" { rest.removeFirst() }
            return name(&rest).map(UnnamedBuild.create)
        }
        guard words.first == "REINDEX" else { return nil }
        let kinds: Set = ["INDEX", "TABLE", "SCHEMA", "DATABASE", "SYSTEM"]
        guard let kind = words.firstIndex(where: kinds.contains) else { return .reindexMany }
        var rest = words[(kind + 1)...]
        if rest.first == "CONCURRENTLY" { rest.removeFirst() }
        guard words[kind] == "INDEX" || words[kind] == "TABLE", let name = name(&rest) else { return .reindexMany }
        return words[kind] == "INDEX" ? .reindexIndex(name) : .reindexTable(name)
    }
}
