import Postgres

// What an operator does by hand, version by version: history, baseline, repair, resolve.
extension Migrator {
    /// Everything that is remembered of this set, in the order of its times, which are the server's clock as it was then.
    public func history() throws(MigrationError) -> [HistoryRow] {
        let control = try sessions.openControl()
        let table = try locate(control)
        return try sessions.translating { () throws(DatabaseError) in try table.rows(of: set.name, control) }
            .sorted { ($0.appliedAt, $0.version) < ($1.appliedAt, $1.version) }
    }

    /// Remembers every file up to a version as applied without running it, for a database that was there before the migrator.
    ///
    /// Only a set that has no history yet can be given one this way.
    /// - Returns: the files' names.
    public func baseline(_ version: Version) throws(MigrationError) -> [String] {
        _ = try file(version)
        return try locked { control, table throws(MigrationError) in
            let rows = try plan(table, control).rows.compactMap(\.history)
            guard rows.isEmpty else {
                throw MigrationError(
                    .conflict, "the set \(set.name) has a history already, from \(rows[0].name) on",
                    hint: "For a single version: " + options.command("resolve VERSION --applied"))
            }
            let files = set.files.filter { $0.version <= version }
            let writer = writer(table)
            try sessions.translating { () throws(DatabaseError) in
                try table.prepare(control)
                try control.execute("BEGIN")
                for file in files { try writer.insert(file, mode: .baseline, control) }
                try control.execute("COMMIT")
            }
            return files.map(\.name)
        }
    }

    /// What ``repair(_:)`` changed.
    public struct Repair: Equatable, Sendable {
        /// The file's name.
        public var name: String
        /// The checksum that was remembered.
        public var before: Checksum
        /// The checksum that is remembered now: that of the file.
        public var after: Checksum
    }

    /// Remembers a changed file with the checksum that it has now, without running it.
    public func repair(_ version: Version) throws(MigrationError) -> Repair {
        let file = try file(version)
        return try locked { control, table throws(MigrationError) in
            let row = try row(version, table, control)
            guard row.state == .applied else {
                throw MigrationError(
                    .conflict, "\(row.name) is not finished",
                    hint: options.command("resolve \(version) --applied") + " or --not-applied")
            }
            try sessions.translating { () throws(DatabaseError) in try writer(table).restamp(file, control) }
            return Repair(name: file.name, before: row.checksum, after: file.checksum)
        }
    }

    /// Remembers a version as applied, or forgets it, on a person's word.
    /// - Returns: the file's name.
    public func resolve(_ version: Version, isApplied: Bool) throws(MigrationError) -> String {
        let known = set[version]
        if isApplied { _ = try file(version) }
        return try locked { control, table throws(MigrationError) in
            if isApplied, let known {
                try sessions.translating { () throws(DatabaseError) in
                    try table.prepare(control)
                    try writer(table).insert(known, mode: .resolved, replacing: true, control)
                }
                return known.name
            }
            let row = try row(version, table, control)
            try sessions.translating { () throws(DatabaseError) in try writer(table).delete(version, control) }
            return row.name
        }
    }

    // MARK: - Steps

    /// Runs something while no other run is under way.
    func locked<Value>(
        _ body: (BlockingConnection, HistoryTable) throws(MigrationError) -> Value
    ) throws(MigrationError) -> Value {
        let control = try sessions.openControl()
        let table = try locate(control)
        try refuseReadOnly(control)
        let lock = try RunLock.acquire(control, table: table, sessions: sessions, report: report)
        defer { lock.release() }
        return try body(control, table)
    }

    func file(_ version: Version) throws(MigrationError) -> MigrationFile {
        guard let file = set[version] else {
            throw MigrationError(
                .usage, "there is no version \(version) in the set \(set.name)",
                hint: set.files.last.map { "Its last file is \($0.name)." })
        }
        return file
    }

    private func row(
        _ version: Version, _ table: HistoryTable, _ control: BlockingConnection
    ) throws(MigrationError) -> HistoryRow {
        let rows = try sessions.translating { () throws(DatabaseError) in try table.rows(of: set.name, control) }
        guard let row = rows.first(where: { $0.version == version }) else {
            throw MigrationError(.conflict, "the history holds no version \(version) of the set \(set.name)")
        }
        return row
    }
}
