import Foundation
import SyncServer
import Testing

@Suite("The embedded migrations")
struct EmbeddedMigrationsTests {
    @Test("are the files of SQL/migrations, byte for byte")
    func equalToFolder() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../SQL/migrations")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path(percentEncoded: false))
            .filter { $0.hasSuffix(".sql") }
            .sorted()
        #expect(!names.isEmpty)
        #expect(EmbeddedMigrations.files.map(\.name) == names)
        for file in EmbeddedMigrations.files {
            #expect(
                Data(file.contents.utf8) == (try Data(contentsOf: folder.appending(path: file.name))), "\(file.name)")
        }
    }
}
