import Postgres

/// The table `schema_migrations`, which remembers what was applied; one for all sets, always named with its schema.
struct HistoryTable: Equatable {
    static let name = "schema_migrations"

    /// The schema that holds it.
    let schema: String

    /// The quoted name with its schema.
    var qualified: String {
        "\(BlockingConnection.quoteIdentifier(schema)).\(BlockingConnection.quoteIdentifier(Self.name))"
    }

    /// The name as a person reads it.
    var description: String { "\(schema).\(Self.name)" }

    private struct Column {
        var name: String
        var definition: String
        var comment: String
        /// What stands for it in a table that was made before it was added; nil where no table can lack it.
        var fallback: String?
    }

    private static let columns = [
        Column(
            name: "set_name", definition: "text COLLATE \"C\" NOT NULL",
            comment: "Which set of migrations the file belongs to."),
        Column(
            name: "version", definition: "numeric NOT NULL", comment: "The number that the file''s name begins with."),
        Column(name: "name", definition: "text NOT NULL", comment: "The file''s name when it was run."),
        Column(
            name: "checksum", definition: "text NOT NULL",
            comment: "SHA-256 of the file when it was run, line ends counted as LF, without a byte order mark."),
        Column(
            name: "state", definition: "text NOT NULL DEFAULT 'applied'",
            comment: "applied, or running: a file without a transaction that was begun and not finished.",
            fallback: "'applied'::text"),
        Column(
            name: "mode", definition: "text NOT NULL DEFAULT 'transaction'",
            comment:
                "How it was applied: transaction, no-transaction, baseline (it was there before), resolved (a person said so).",
            fallback: "'transaction'::text"),
        Column(
            name: "applied_at", definition: "timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()",
            comment: "When it was applied; while it is running, when it was begun.",
            fallback: "'epoch'::timestamptz"),
        Column(
            name: "duration_ms", definition: "bigint NOT NULL DEFAULT 0", comment: "How long it took, in milliseconds.",
            fallback: "0::bigint"),
        Column(
            name: "applied_by", definition: "text NOT NULL DEFAULT session_user", comment: "The role that applied it.",
            fallback: "''::text"),
        Column(
            name: "app_version", definition: "text", comment: "The version of the program that applied it.",
            fallback: "NULL::text"),
        Column(
            name: "statements_done", definition: "integer NOT NULL DEFAULT 0",
            comment: "Without a transaction: how many of the file''s statements are done.", fallback: "0::integer"),
        Column(
            name: "statements_hash", definition: "text NOT NULL DEFAULT ''",
            comment: "Without a transaction: a chained SHA-256 over the statements that are done.", fallback: "''::text"
        ),
        Column(
            name: "statement_in_flight", definition: "text",
            comment: "Without a transaction: the statement that was sent and whose end is not recorded.",
            fallback: "NULL::text"),
    ]

    // MARK: - Finding and making it

    /// The table's place: the schema asked for, or the first of the connection's search path.
    static func locate(_ schema: String?, _ connection: BlockingConnection) throws(DatabaseError) -> HistoryTable {
        if let schema {
            var parameters = ParameterList()
            parameters.append(schema)
            let found = try connection.query(
                "SELECT pg_catalog.to_regnamespace(pg_catalog.quote_ident($1)) IS NOT NULL", parameters)
            guard try found.bool(0, 0) else {
                throw DatabaseError(
                    .server, "there is no schema \"\(schema)\"", sqlState: .invalidSchemaName,
                    hint: "CREATE SCHEMA \(BlockingConnection.quoteIdentifier(schema));")
            }
            return HistoryTable(schema: schema)
        }
        let found = try connection.query("SELECT pg_catalog.current_schema()::text")
        guard try !found.isNull(0, 0) else {
            throw DatabaseError(
                .server, "no schema of the connection's search_path exists", sqlState: .invalidSchemaName,
                hint: "Create one, or name the history's schema with --schema.")
        }
        return HistoryTable(schema: try found.text(0, 0))
    }

    /// The columns that are there; none when there is no table.
    private func presentColumns(_ connection: BlockingConnection) throws(DatabaseError) -> Set<String> {
        var parameters = ParameterList()
        parameters.append(schema)
        parameters.append(Self.name)
        let found = try connection.query(
            """
            SELECT a.attname::text
            FROM pg_catalog.pg_attribute a
            JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped
            """, parameters)
        var names: Set<String> = []
        for row in 0..<found.rowCount { names.insert(try found.text(row, 0)) }
        guard names.isEmpty || Self.columns.allSatisfy({ $0.fallback != nil || names.contains($0.name) }) else {
            throw DatabaseError(
                .server, "the table \(description) belongs to another program: it lacks our columns",
                hint: "Keep the history in another schema with --schema.")
        }
        return names
    }

    /// Makes the table, or adds the columns that it lacks.
    func prepare(_ connection: BlockingConnection) throws(DatabaseError) {
        let present = try presentColumns(connection)
        let missing = Self.columns.filter { !present.contains($0.name) }
        guard !missing.isEmpty else { return }
        var statements: [String] = []
        if present.isEmpty {
            statements.append(
                """
                CREATE TABLE \(qualified) (
                    \(Self.columns.map { "\($0.name) \($0.definition)" }.joined(separator: ",\n    ")),
                    CONSTRAINT \(Self.name)_pkey PRIMARY KEY (set_name, version),
                    CONSTRAINT \(Self.name)_state_check CHECK (state IN ('applied', 'running'))
                );
                COMMENT ON TABLE \(qualified) IS 'What was applied to this database: one row per migration. Written by the migrator.';
                """)
        } else {
            statements.append(
                contentsOf: missing.map { "ALTER TABLE \(qualified) ADD COLUMN \($0.name) \($0.definition);" })
        }
        statements.append(contentsOf: missing.map { "COMMENT ON COLUMN \(qualified).\($0.name) IS '\($0.comment)';" })
        try connection.execute("BEGIN;\n" + statements.joined(separator: "\n") + "\nCOMMIT;")
    }

    // MARK: - Rows

    /// All rows of a set, by version; none when there is no table.
    func rows(of set: String, _ connection: BlockingConnection) throws(DatabaseError) -> [HistoryRow] {
        let present = try presentColumns(connection)
        guard !present.isEmpty else { return [] }
        func column(_ name: String) -> String {
            present.contains(name) ? name : Self.columns.first { $0.name == name }?.fallback ?? "NULL"
        }
        var parameters = ParameterList()
        parameters.append(set)
        let found = try connection.query(
            """
            SELECT version::text, name, checksum, \(column("state")), \(column("mode")), \(column("applied_at")),
                   \(column("duration_ms")), \(column("applied_by")), \(column("app_version")), \(column("statements_done")),
                   \(column("statements_hash")), \(column("statement_in_flight"))
            FROM \(qualified) WHERE set_name = $1 ORDER BY version
            """, parameters)
        var rows: [HistoryRow] = []
        rows.reserveCapacity(found.rowCount)
        do throws(DatabaseError) {
            for row in 0..<found.rowCount { rows.append(try Self.row(row, of: found)) }
        } catch {
            var error = error
            error.hint =
                "The table was changed by hand. Look at it, and mend it: SELECT * FROM \(qualified) ORDER BY version;"
            throw error
        }
        return rows
    }

    private static func row(_ row: Int, of found: QueryResult) throws(DatabaseError) -> HistoryRow {
        func optional(_ column: Int) throws(DatabaseError) -> String? {
            try found.isNull(row, column) ? nil : try found.text(row, column)
        }
        guard let version = Version(try found.text(row, 0)),
            let state = HistoryRow.State(rawValue: try found.text(row, 3))
        else {
            throw DatabaseError(
                .protocol, "the history holds a row that this program cannot read: \(try found.text(row, 1))")
        }
        return HistoryRow(
            version: version, name: try found.text(row, 1), checksum: Checksum(hex: try found.text(row, 2)),
            state: state,
            mode: HistoryRow.Mode(rawValue: try found.text(row, 4)) ?? .transaction,
            appliedAt: try found.microsecondsSince1970(row, 5), durationMilliseconds: try found.int8(row, 6),
            appliedBy: try found.text(row, 7), applicationVersion: try optional(8),
            progress: StatementProgress(
                count: Int(try found.int4(row, 9)), hash: try found.text(row, 10), inFlight: try optional(11)))
    }
}
