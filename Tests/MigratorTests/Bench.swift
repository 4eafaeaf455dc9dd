import Foundation
import Postgres
import Synchronization
import TestSupport

@testable import Migrator

/// A database and a folder of migrations, for one test.
final class Bench {
    let database: TestDatabase
    let folder = try? TemporaryFolder()
    let events = Mutex<[Event]>([])

    init(_ files: [String: String] = [:], on cluster: TestCluster? = nil) throws {
        database = try TestDatabase.make(on: cluster)
        for (name, contents) in files { try write(name, contents) }
    }

    var path: String { folder?.path ?? "" }

    func write(_ name: String, _ contents: String) throws {
        try folder?.write(name, contents)
    }

    func remove(_ name: String) throws {
        try folder?.remove(name)
    }

    func migrator(
        set: String = "test", _ change: (inout Migrator.Options) -> Void = { _ in }
    ) throws -> Migrator {
        var options = Migrator.Options()
        options.retryDelay = .milliseconds(10)
        options.applicationVersion = "1.2.3"
        change(&options)
        return Migrator(
            set: try MigrationSet(name: set, directory: path), database: database.conninfo, options: options
        ) { [self] event in
            events.withLock { $0.append(event) }
        }
    }

    /// The names of the files that one `up` applied.
    @discardableResult
    func up(_ change: (inout Migrator.Options) -> Void = { _ in }) throws -> [String] {
        try migrator(change).up().applied.map(\.name)
    }

    /// The failure of one `up` that must fail.
    func failure(_ change: (inout Migrator.Options) -> Void = { _ in }) throws -> MigrationError? {
        let migrator = try migrator(change)
        do throws(MigrationError) {
            _ = try migrator.up()
            return nil
        } catch {
            return error
        }
    }

    /// The rows of a query, each with its columns joined by a bar.
    func rows(_ sql: String) throws -> [String] {
        let result = try database.connect().execute(sql).last
        guard let result else { return [] }
        return try (0..<result.rowCount).map { row in
            try (0..<result.columnCount).map { column in
                try result.isNull(row, column) ? "" : result.text(row, column)
            }.joined(separator: "|")
        }
    }

    /// The first column of the first row.
    func value(_ sql: String) throws -> String {
        try rows(sql).first ?? ""
    }

    /// What the history holds: name, state and mode, by version.
    var history: [String] {
        get throws {
            try rows("SELECT set_name, name, state, mode FROM public.schema_migrations ORDER BY set_name, version")
        }
    }
}
