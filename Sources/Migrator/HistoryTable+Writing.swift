import Postgres

/// A set's rows as they are written.
struct HistoryWriter {
    let table: HistoryTable
    let set: String
    let applicationVersion: String?

    /// Adds the row of a file, or puts it in the place of the one that is there when `replacing`.
    func insert(
        _ file: MigrationFile, state: HistoryRow.State = .applied, mode: HistoryRow.Mode, milliseconds: Int64 = 0,
        replacing: Bool = false, _ connection: BlockingConnection
    ) throws(DatabaseError) {
        var parameters = key(file.version)
        parameters.append(file.name)
        parameters.append(file.checksum.hex)
        parameters.append(state.rawValue)
        parameters.append(mode.rawValue)
        parameters.append(milliseconds)
        if let applicationVersion { parameters.append(applicationVersion) } else { parameters.appendNull(.text) }
        let conflict = """
            ON CONFLICT (set_name, version) DO UPDATE SET (name, checksum, state, mode, applied_at, duration_ms, applied_by,
                app_version, statements_done, statements_hash, statement_in_flight)
            = (EXCLUDED.name, EXCLUDED.checksum, EXCLUDED.state, EXCLUDED.mode, EXCLUDED.applied_at, EXCLUDED.duration_ms,
                EXCLUDED.applied_by, EXCLUDED.app_version, 0, '', NULL)
            """
        try connection.query(
            """
            INSERT INTO \(table.qualified)
                (set_name, version, name, checksum, state, mode, applied_at, duration_ms, applied_by, app_version)
            VALUES ($1, $2::pg_catalog.numeric, $3, $4, $5, $6, pg_catalog.clock_timestamp(), $7, session_user, $8)
            \(replacing ? conflict : "")
            """, parameters)
    }

    /// Records how far a running file has come.
    func update(_ file: MigrationFile, _ progress: StatementProgress, _ connection: BlockingConnection)
        throws(DatabaseError)
    {
        var parameters = key(file.version)
        parameters.append(Int32(clamping: progress.count))
        parameters.append(progress.hash)
        if let inFlight = progress.inFlight { parameters.append(inFlight) } else { parameters.appendNull(.text) }
        try change(
            "SET statements_done = $3, statements_hash = $4, statement_in_flight = $5", where: "state = 'running'",
            parameters,
            connection)
    }

    /// Records that a running file is done, with the text that it has now.
    func finish(_ file: MigrationFile, milliseconds: Int64, _ connection: BlockingConnection) throws(DatabaseError) {
        var parameters = key(file.version)
        parameters.append(file.name)
        parameters.append(file.checksum.hex)
        parameters.append(milliseconds)
        if let applicationVersion { parameters.append(applicationVersion) } else { parameters.appendNull(.text) }
        try change(
            """
            SET state = 'applied', name = $3, checksum = $4, duration_ms = $5, app_version = $6, applied_by = session_user,
                applied_at = pg_catalog.clock_timestamp(), statement_in_flight = NULL
            """, where: "state = 'running'", parameters, connection)
    }

    /// Gives a row the name and checksum that the file has now.
    func restamp(_ file: MigrationFile, _ connection: BlockingConnection) throws(DatabaseError) {
        var parameters = key(file.version)
        parameters.append(file.name)
        parameters.append(file.checksum.hex)
        try change("SET name = $3, checksum = $4", where: "true", parameters, connection)
    }

    /// Forgets a version.
    func delete(_ version: Version, _ connection: BlockingConnection) throws(DatabaseError) {
        try connection.query(
            "DELETE FROM \(table.qualified) WHERE set_name = $1 AND version = $2::pg_catalog.numeric", key(version))
    }

    private func key(_ version: Version) -> ParameterList {
        var parameters = ParameterList()
        parameters.append(set)
        parameters.append(version.digits)
        return parameters
    }

    private func change(
        _ assignments: String, where condition: String, _ parameters: ParameterList, _ connection: BlockingConnection
    ) throws(DatabaseError) {
        let result = try connection.query(
            """
            UPDATE \(table.qualified) \(assignments)
            WHERE set_name = $1 AND version = $2::pg_catalog.numeric AND \(condition)
            """, parameters)
        guard result.affectedRowCount == 1 else {
            throw DatabaseError(
                .protocol, "the history's row of this file was changed by somebody else", hint: "Look with status.")
        }
    }
}
