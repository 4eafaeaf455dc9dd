import Foundation
import IeumClient
import Testing

// snippet
struct Person: Persistable {
    static let collection = "person"

    var id: String
    var timestamp = Date()
    var fullName: String
    var phoneNumberList: [String] = []
    var mainPhoneNumber: String
}
// end

/// What SchemaMigration.md shows, run.
@Suite("migrating, as the page shows it")
struct MigrationSnippets {
    struct FirstPerson: Persistable {
        static let collection = "person"
        var id: String
        var timestamp = Date()
        var firstName: String
        var lastName: String
        var phoneNumberList: [String]
    }

    @Test("two steps up, skipped versions included")
    func ladder() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ieum-snippets-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let url = folder.appendingPathComponent("games.sqlite")
        try GameStore(at: url).save(
            FirstPerson(id: "1", firstName: "Jieun", lastName: "Lee", phoneNumberList: ["010-1", "010-2"]))

        // snippet
        let store = try GameStore(at: url, schemaVersion: 2) { migration, oldVersion in
            if oldVersion < 1 {
                try migration.enumerateObjects(ofType: Person.self) { old, new in
                    try new.set("fullName", to: "\(old.string("firstName")) \(old.string("lastName"))")
                    new.remove("firstName")
                    new.remove("lastName")
                }
            }
            if oldVersion < 2 {
                try migration.enumerateObjects(ofType: Person.self) { old, new in
                    let numbers = try old.list("phoneNumberList", of: String.self)
                    try new.set("mainPhoneNumber", to: numbers.first ?? "")
                }
            }
        }
        // end
        let person = try #require(try store.object(Person.self, id: "1"))
        #expect(person.fullName == "Jieun Lee")
        #expect(person.mainPhoneNumber == "010-1")
        #expect(person.phoneNumberList == ["010-1", "010-2"])
    }

    @Test("what an old object can be asked for, and the other changes")
    func access() throws {
        struct Old: Persistable {
            struct Board: Codable { var width = 5 }
            static let collection = "old"
            var id = "1"
            var timestamp = Date(timeIntervalSince1970: 0)
            var name = "Ada"
            var lives = 3
            var ratio = 0.5
            var isOver = true
            var icon = Data([1])
            var owner = UUID()
            var nickname: String?
            var words = ["a", "b", "a"]
            var board = Board()
            var boards = [Board(), Board()]
            var phone = "010"
        }
        struct New: Persistable {
            static let collection = "old"
            var id = "1"
            var timestamp = Date(timeIntervalSince1970: 0)
            var mainPhone = ""
        }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ieum-snippets-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let url = folder.appendingPathComponent("games.sqlite")
        try GameStore(at: url).save(Old())
        let store = try GameStore(at: url, schemaVersion: 1) { migration, _ in
            try migration.enumerateObjects(ofType: New.self) { old, new in
                // snippet
                let name = try old.string("name")
                let lives = try old.int("lives")
                let ratio = try old.double("ratio")
                let isOver = try old.bool("isOver")
                let icon = try old.data("icon")
                let start = try old.date("timestamp")
                let owner = try old.uuid("owner")
                let nickname = try old.optional("nickname", as: String.self)
                let words = try old.list("words", of: String.self)
                let width = try old.object("board").int("width")
                let widths = try old.objects("boards").map { board in try board.int("width") }
                // end
                #expect(name == "Ada" && lives == 3 && ratio == 0.5 && isOver && icon == Data([1]))
                #expect(start == Date(timeIntervalSince1970: 0) && nickname == nil && words == ["a", "b", "a"])
                #expect(width == 5 && widths == [5, 5] && owner.uuidString.count == 36)
                new.remove("words")
            }
            // snippet
            try migration.renameProperty(onType: New.self, from: "phone", to: "mainPhone")
            try migration.create(New(id: "2", mainPhone: "020"))
            try migration.deleteData(forType: "retired")
            // end
        }
        #expect(try store.objects(New.self).map(\.mainPhone) == ["010", "020"])
    }

    @Test("in development, a file of another schema is set aside")
    func development() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ieum-snippets-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let url = folder.appendingPathComponent("games.sqlite")
        try GameStore(at: url).save(Game(score: 1))
        // snippet
        let store = try GameStore(at: url, schemaVersion: 3, deleteIfMigrationNeeded: true) { copy in
            print("the old games are in \(copy.path)")
        }
        // end
        #expect(try store.count(Game.self) == 0)
    }
}
