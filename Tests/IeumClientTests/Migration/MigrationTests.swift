import Foundation
import Synchronization
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("A schema migration")
struct MigrationTests {
    @Test("makes a full name of first and last names")
    func names() throws {
        let place = try StorePlace()
        try place.fill(
            schema: 0,
            [
                NamedPerson0(id: "a", firstName: "이", lastName: "순신"),
                NamedPerson0(id: "b", firstName: "Ada", lastName: "Lovelace"),
            ])
        let store = try GameStore(at: place.url, schemaVersion: 1) { migration, oldVersion in
            #expect(oldVersion == 0 && migration.newVersion == 1)
            try migration.enumerateObjects(ofType: NamedPerson.self) { old, new in
                try new.set("fullName", to: "\(old.string("firstName")) \(old.string("lastName"))")
                new.remove("firstName")
                new.remove("lastName")
            }
        }
        #expect(
            try store.objects(NamedPerson.self) == [
                NamedPerson(id: "a", fullName: "이 순신", level: 7),
                NamedPerson(id: "b", fullName: "Ada Lovelace", level: 7),
            ])
    }

    @Test("takes the first of a list of texts, an empty one too, and keeps the list")
    func phoneNumbers() throws {
        let place = try StorePlace()
        try place.fill(
            schema: 0,
            [
                PhonePerson0(id: "a", phoneNumberList: ["010", "02", "010"]),
                PhonePerson0(id: "b", phoneNumberList: []),
            ])
        let store = try GameStore(at: place.url, schemaVersion: 1) { migration, _ in
            try migration.enumerateObjects(ofType: PhonePerson.self) { old, new in
                let numbers = try old["phoneNumberList"].strings
                #expect(try numbers == old.list("phoneNumberList", of: String.self))
                try new.set("mainPhoneNumber", to: numbers.first ?? "")
            }
        }
        #expect(
            try store.objects(PhonePerson.self) == [
                PhonePerson(id: "a", phoneNumberList: ["010", "02", "010"], mainPhoneNumber: "010"),
                PhonePerson(id: "b", phoneNumberList: [], mainPhoneNumber: ""),
            ])
    }

    @Test("runs for a lower version alone: not for a new file, not for an equal version; a higher one is an error")
    func versions() throws {
        let place = try StorePlace()
        let calls = Mutex<[Int]>([])
        func open(_ version: Int) throws {
            _ = try GameStore(at: place.url, schemaVersion: version) { _, old in calls.withLock { $0.append(old) } }
        }
        try open(3)
        try open(3)
        #expect(calls.withLock { $0 }.isEmpty)
        try open(5)
        #expect(calls.withLock { $0 } == [3])
        let before = try place.contents()
        let error = #expect(throws: StoreError.self) { try open(4) }
        #expect(error?.kind == .newerSchemaVersion && error?.message.contains("5") == true)
        #expect(try place.contents() == before)
        try open(5)
        #expect(calls.withLock { $0 } == [3])
    }

    @Test("climbs the ladder from 1 to 4 in one go, each enumeration's old object being the stored one")
    func ladder() throws {
        let place = try StorePlace()
        try place.fill(schema: 1, [Pet(id: "p", name: "Rex")])
        let store = try GameStore(at: place.url, schemaVersion: 4, migration: Self.petLadder)
        #expect(try store.object(Pet.self, id: "p")?.name == "Rex-2-3-4")
    }

    private static let petLadder: @Sendable (Migration, Int) throws -> Void = { migration, oldVersion in
        for step in [2, 3, 4] where oldVersion < step {
            try migration.enumerateObjects(ofType: Pet.self) { old, new in
                let isOriginal = try !old.string("name").contains("-")
                #expect(isOriginal)
                try new.set("name", to: "\(new.current.string("name"))-\(step)")
            }
        }
    }

    @Test("is one transaction: what the block throws comes out, and the old file is as it was")
    func rollback() throws {
        let place = try StorePlace()
        try place.fill(schema: 0, [Pet(id: "a"), Pet(id: "b")])
        let before = try place.contents()
        #expect(throws: Refusal.self) {
            _ = try GameStore(at: place.url, schemaVersion: 1) { migration, _ in
                try migration.create(Pet(id: "c"))
                try migration.enumerateObjects(ofType: Pet.self) { old, new in
                    try new.set("name", to: "changed")
                    if old.id == "b" { throw Refusal() }
                }
            }
        }
        #expect(try place.contents() == before)
        #expect(try GameStore(at: place.url, schemaVersion: 0).objects(Pet.self).map(\.name) == ["", ""])
    }

    @Test("killed in its middle leaves the old file intact")
    func killed() async throws {
        let place = try StorePlace()
        try place.fill(schema: 0, (0..<500).map { Pet(id: "pet\($0)") })
        let before = try place.contents()
        let path = place.url.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            _ = try GameStore(at: URL(fileURLWithPath: path), schemaVersion: 1) { migration, _ in
                var visited = 0
                try migration.enumerateObjects(ofType: Pet.self) { _, new in
                    // Long enough that SQLite has pages of it in the file's log already.
                    try new.set("name", to: String(repeating: "changed ", count: 2_000))
                    visited += 1
                    if visited == 400 { kill(getpid(), SIGKILL) }
                }
            }
        }
        #expect(try place.contents() == before)
        let store = try GameStore(at: place.url, schemaVersion: 0)
        #expect(try store.objects(Pet.self).allSatisfy { $0.name.isEmpty })
        #expect(store.damagedCopy == nil)
    }

    @Test("visits by ascending id, not what the block created, not what it deleted")
    func order() throws {
        let place = try StorePlace()
        try place.fill(schema: 0, ["c", "a", "d", "b"].map { Pet(id: $0) } + [NamedPerson(id: "x", fullName: "")])
        let seen = Mutex<[String]>([])
        let store = try GameStore(at: place.url, schemaVersion: 1) { migration, _ in
            try migration.enumerateObjects(ofType: "pet") { old, new in
                seen.withLock { $0.append(old.id) }
                if old.id == "a" {
                    try migration.create(Pet(id: "bb", name: "created"))
                    try migration.delete(new)
                    try new.set("name", to: "a deleted object is not revived")
                }
            }
            try migration.enumerateObjects(ofType: "pet") { old, _ in seen.withLock { $0.append(old.id) } }
            #expect(throws: StoreError.self) { try migration.create(Pet(id: "c")) }
        }
        #expect(seen.withLock { $0 } == ["a", "b", "c", "d", "b", "c", "d"])
        #expect(try store.objects(Pet.self).map(\.id) == ["b", "bb", "c", "d"])
        #expect(try store.count(NamedPerson.self) == 1)
    }

    @Test("renames without loss, on all objects, and keeps what no type knows")
    func rename() throws {
        struct Old: Persistable {
            static let collection = "pet"
            var id: String
            var timestamp = Date(timeIntervalSince1970: 1_000)
            var title: String?
            var unknown = 12_345_678_901_234_567
        }
        let place = try StorePlace()
        try place.fill(schema: 0, [Old(id: "a", title: "Rex"), Old(id: "b", title: nil)])
        let store = try GameStore(at: place.url, schemaVersion: 1) { migration, _ in
            try migration.renameProperty(onType: Pet.self, from: "title", to: "name")
        }
        #expect(try store.object(Pet.self, id: "a")?.name == "Rex")
        #expect(try place.contents()[0].contains("\"unknown\":12345678901234567"))
        #expect(try !place.contents()[0].contains("title") && !place.contents()[1].contains("name"))
    }

    @Test("keeps the values when an optional property becomes required; the others take the default")
    func required() throws {
        struct Old: Persistable {
            static let collection = "person"
            var id: String
            var timestamp = Date(timeIntervalSince1970: 1_000)
            var fullName: String?
        }
        let place = try StorePlace()
        try place.fill(schema: 0, [Old(id: "a", fullName: "kept"), Old(id: "b", fullName: nil)])
        let store = try GameStore(at: place.url, schemaVersion: 1) { _, _ in }
        #expect(try store.objects(NamedPerson.self).map(\.fullName) == ["kept", ""])
    }

    @Test("deletes a type's data, and says whether there was any")
    func deleteData() throws {
        let place = try StorePlace()
        try place.fill(schema: 0, [Pet(id: "a"), Pet(id: "b"), NamedPerson(id: "x", fullName: "")])
        let store = try GameStore(at: place.url, schemaVersion: 1) { migration, _ in
            let (first, second) = try (migration.deleteData(forType: "pet"), migration.deleteData(forType: Pet.self))
            #expect(first && !second)
        }
        #expect(try store.count(Pet.self) == 0)
        #expect(try store.count(NamedPerson.self) == 1)
    }

    @Test("throws at a mistyped name; a type's own name may have nothing stored")
    func mistyped() throws {
        let place = try StorePlace()
        try place.fill(schema: 0, [NamedPerson(id: "x", fullName: "")])
        let error = #expect(throws: StoreError.self) {
            _ = try GameStore(at: place.url, schemaVersion: 1) { migration, _ in
                try migration.enumerateObjects(ofType: "persom") { _, _ in }
            }
        }
        #expect(error?.kind == .invalidID)
        #expect(error?.message.contains("persom") == true && error?.hint?.contains("person") == true)
        _ = try GameStore(at: place.url, schemaVersion: 1) { migration, _ in
            #expect(migration.collections == ["person"])
            try migration.enumerateObjects(ofType: Pet.self) { _, _ in }
        }
    }

    @Test("is over with its block: a migration that was kept changes nothing, and keeps no file open")
    func escaped() throws {
        let place = try StorePlace()
        try place.fill(schema: 0, [Pet(id: "a")])
        nonisolated(unsafe) var kept: Migration?
        weak var opened: GameStore?
        do {
            let store = try GameStore(at: place.url, schemaVersion: 1) { migration, _ in kept = migration }
            opened = store
        }
        #expect(opened == nil)
        let error = #expect(throws: StoreError.self) { try kept?.deleteData(forType: Pet.self) }
        #expect(error?.kind == .misuse)
    }

    @Test("does not make a player's edit of an object: when it was saved, and that it was sent, stay")
    func standing() throws {
        let place = try StorePlace()
        try place.fill(schema: 0, [Pet(id: "a", name: "Rex")])
        do {
            let connection = try SQLiteConnection(path: place.url.path, flags: 2)
            try connection.run("UPDATE games SET unsent = 0, saved = 42, base = 7")
        }
        _ = try GameStore(at: place.url, schemaVersion: 1) { migration, _ in
            try migration.enumerateObjects(ofType: Pet.self) { _, new in try new.set("name", to: "Max") }
        }
        let line = try place.contents()[0]
        #expect(line.hasPrefix("pet a 1 42 0 ") && line.contains("Max"))
    }

    @Test("leaves what is no JSON as it is, and goes on")
    func damaged() throws {
        let place = try StorePlace()
        try place.fill(schema: 0, [Pet(id: "a"), Pet(id: "b")])
        do {
            let connection = try SQLiteConnection(path: place.url.path, flags: 2)
            try connection.run("UPDATE games SET state = '{\"name\":' WHERE id = 'a'")
        }
        let store = try GameStore(at: place.url, schemaVersion: 1) { migration, _ in
            try migration.enumerateObjects(ofType: Pet.self) { _, new in try new.set("name", to: "Max") }
        }
        #expect(try store.object(Pet.self, id: "b")?.name == "Max")
        let error = #expect(throws: StoreError.self) { try store.object(Pet.self, id: "a") }
        #expect(error?.kind == .invalidState)
        #expect(try place.contents()[0].hasSuffix("{\"name\":"))
    }

    // MARK: States from other devices

    private func arrive(_ state: String, id: String, schema: Int, at place: StorePlace) throws {
        let connection = try SQLiteConnection(path: place.url.path, flags: 2)
        try connection.run(
            """
            INSERT INTO games (collection, id, state, timestamp, schema, saved, unsent, change, span)
            VALUES ('pet', ?, ?, 5, ?, 1, 0, 1000, 62)
            """, .text(id), .bytes(Array(state.utf8)), .integer(Int64(schema)))
    }

    private let rex = #"{"id":"p","timestamp":"2026-01-01T00:00:00Z","name":"Rex"}"#

    @Test("takes a state of an older app up when it is read, by the same ladder", arguments: [1, 2, 3])
    func pulled(schema: Int) throws {
        let place = try StorePlace()
        let store = try GameStore(at: place.url, schemaVersion: 4, migration: Self.petLadder)
        try arrive(rex, id: "p", schema: schema, at: place)
        let name = "Rex" + [2, 3, 4].filter { $0 > schema }.map { "-\($0)" }.joined()
        #expect(try store.object(Pet.self, id: "p")?.name == name)
        #expect(try place.contents()[0].contains("pet p \(schema) 1 0 "))
        // And a later migration begins where that state stands.
        let newer = try GameStore(at: place.url, schemaVersion: 5) { migration, oldVersion in
            try Self.petLadder(migration, oldVersion)
            guard oldVersion < 5 else { return }
            try migration.enumerateObjects(ofType: Pet.self) { _, new in
                try new.set("name", to: new.current.string("name") + "-5")
            }
        }
        #expect(try newer.object(Pet.self, id: "p")?.name == name + "-5")
        #expect(try place.contents()[0].hasPrefix("pet p 5 1 0 "))
    }

    @Test("keeps a state of a newer app, says that a newer app is needed, and does not overwrite it")
    func newer() throws {
        let place = try StorePlace()
        let store = try GameStore(at: place.url, schemaVersion: 4, migration: Self.petLadder)
        try arrive(rex, id: "p", schema: 5, at: place)
        let before = try place.contents()
        for attempt in [
            { _ = try store.object(Pet.self, id: "p") }, { try store.save(Pet(id: "p", name: "mine")) },
            { _ = try store.latest(Pet.self) },
        ] {
            let error = #expect(throws: StoreError.self) { try attempt() }
            #expect(error?.kind == .newerSchema && error?.hint?.contains("Update the app") == true)
        }
        #expect(try place.contents() == before)
        // The newer app then reads it, unchanged by any block.
        let updated = try GameStore(at: place.url, schemaVersion: 5, migration: Self.petLadder)
        #expect(try updated.object(Pet.self, id: "p")?.name == "Rex")
    }

    @Test("over one state does nothing beside it, and says so when it deletes it")
    func single() throws {
        let ladder = SchemaLadder(to: 2) { migration, _ in
            #expect(migration.collections == ["pet"])
            try migration.create(NamedPerson(id: "new", fullName: ""))
            try migration.enumerateObjects(ofType: "removed") { _, _ in Issue.record("there are none") }
            try migration.deleteData(forType: NamedPerson.self)
            try migration.enumerateObjects(ofType: Pet.self) { old, new in
                if try old.string("name") == "gone" { try migration.delete(new) }
                try new.set("name", to: old.string("name") + "!")
            }
        }
        let key = try GameKey(collection: "pet", id: "p")
        func state(_ text: String) throws -> PersistedState { try PersistedState(json: Array(text.utf8)) }
        #expect(
            try String(decoding: ladder.state(of: key, state(#"{"name":"a","x":1}"#), schema: 1).json, as: UTF8.self)
                == #"{"name":"a!","x":1}"#)
        #expect(try ladder.state(of: key, state(#"{"name":"a"}"#), schema: 2) == state(#"{"name":"a"}"#))
        let gone = #expect(throws: StoreError.self) { try ladder.state(of: key, state(#"{"name":"gone"}"#), schema: 1) }
        #expect(gone?.kind == .migrationFailed)
        let newer = #expect(throws: StoreError.self) { try ladder.state(of: key, state("{}"), schema: 3) }
        #expect(newer?.kind == .newerSchema)
    }

    // MARK: Deleting instead

    @Test("deleteIfMigrationNeeded begins anew and keeps a copy aside that opens whole", arguments: [(1, 2), (2, 1)])
    func deleting(old: Int, new: Int) throws {
        let place = try StorePlace()
        try place.fill(schema: old, [Pet(id: "a", name: "Rex")])
        var aside: URL?
        let store = try GameStore(
            at: place.url, schemaVersion: new, deleteIfMigrationNeeded: true, setAside: { aside = $0 })
        #expect(try store.count(Pet.self) == 0)
        let copy = try GameStore(at: try #require(aside), schemaVersion: old)
        #expect(try copy.object(Pet.self, id: "a")?.name == "Rex")
        #expect(place.files.contains { $0.hasPrefix("games.store.schema-\(old)-") })
    }

    @Test("deleteIfMigrationNeeded keeps the file where the versions are equal, or it says false")
    func notDeleting() throws {
        let place = try StorePlace()
        try place.fill(schema: 1, [Pet(id: "a", name: "Rex")])
        let same = try GameStore(at: place.url, schemaVersion: 1, deleteIfMigrationNeeded: true)
        #expect(try same.count(Pet.self) == 1)
        let other = try GameStore(at: place.url, schemaVersion: 2, deleteIfMigrationNeeded: false)
        #expect(try other.count(Pet.self) == 1)
        let new = try StorePlace()
        _ = try GameStore(at: new.url, schemaVersion: 2, deleteIfMigrationNeeded: true)
        #expect(!new.files.contains { $0.contains("schema") })
    }
}
