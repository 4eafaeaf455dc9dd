import Foundation
import TestSupport

@testable import IeumClient

/// The worked example's first object, as the app of schema 0 has it.
struct NamedPerson0: Persistable, Equatable {
    static let collection = "person"
    var id: String
    var timestamp = Date(timeIntervalSince1970: 1_000)
    var firstName: String
    var lastName: String
}

/// And as that of schema 1 has it.
struct NamedPerson: Persistable, Equatable {
    static let collection = "person"
    var id: String
    var timestamp = Date(timeIntervalSince1970: 1_000)
    var fullName: String
    /// Added without a migration.
    var level = 7
    static var defaults: NamedPerson? { NamedPerson(id: "", fullName: "") }
}

/// The second object, schema 0.
struct PhonePerson0: Persistable, Equatable {
    static let collection = "person"
    var id: String
    var timestamp = Date(timeIntervalSince1970: 1_000)
    var phoneNumberList: [String]
}

/// The second object, schema 1.
struct PhonePerson: Persistable, Equatable {
    static let collection = "person"
    var id: String
    var timestamp = Date(timeIntervalSince1970: 1_000)
    var phoneNumberList: [String]
    var mainPhoneNumber: String
}

/// A second collection.
struct Pet: Persistable, Equatable {
    static let collection = "pet"
    var id: String
    var timestamp = Date(timeIntervalSince1970: 1_000)
    var name = ""
}

/// A store's file in a folder of its own.
struct StorePlace {
    let folder: TestFolder
    var url: URL { URL(fileURLWithPath: folder.path).appendingPathComponent("games.store") }

    init() throws {
        folder = try TestFolder()
    }

    /// Opens with a schema, saves, and closes.
    func fill(schema: Int, _ games: [any Persistable]) throws {
        let store = try GameStore(at: url, schemaVersion: schema)
        try store.write { transaction in for game in games { try transaction.save(game) } }
    }

    /// What is in the file: states, schemas and the version.
    func contents() throws -> [String] {
        let connection = try SQLiteConnection(path: url.path, flags: 2)
        var lines: [String] = []
        try connection.rows(
            """
            SELECT collection || ' ' || id || ' ' || schema || ' ' || saved || ' ' || unsent || ' ' ||
                   coalesce(CAST(state AS TEXT), '-') FROM games ORDER BY 1
            """
        ) { lines.append($0.text(0) ?? "") }
        lines.append(try connection.text("SELECT value FROM meta WHERE key = 'schema_version'") ?? "none")
        return lines
    }

    var files: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()
    }
}

/// What a block may throw.
struct Refusal: Error, Equatable {}
