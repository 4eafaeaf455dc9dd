import Foundation
import Migrator
import Postgres
import SyncServer
import TestSupport
import Testing

@Suite("states changed in the database beside a daemon")
struct StateMigrationTests {
    @Test("a device that watches is told, pulls the migrated state, and carries on from it")
    func watched() throws {
        let database = try TestDatabase.make()
        _ = try Migrator(
            set: MigrationSet(name: "ieum", embedded: EmbeddedMigrations.files), database: database.conninfo
        ).up()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (phone, _) = try newPlayer(daemon)
        let pushed = try phone.ask(#"PUSH contacts.person 7 base=0 {"firstName":"지은","lastName":"Kim"}"#)
        #expect(fields(pushed)["outcome"] == "created")
        _ = try phone.ask("WATCH since=1")
        let recipes = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../SQL/recipes")
            .standardizedFileURL.path(percentEncoded: false)
        let start = ContinuousClock.now
        let applied = try Migrator(
            set: MigrationSet(name: "recipes", directory: recipes), database: database.conninfo
        ).up().applied
        #expect(applied.count == 3)
        // Sooner than the daemon would find out by itself, which it does every 30 seconds.
        #expect(try phone.line() == "* CHANGED revision=2")
        #expect(ContinuousClock.now - start < .seconds(20))
        try phone.send("PULL since=1")
        let lines = try phone.reply()
        #expect(lines.first?.hasPrefix("GAME contacts.person 7 revision=2 ") == true)
        #expect(lines.first?.contains(" schema=1 ") == true)
        #expect(lines.first?.hasSuffix(#" {"fullName":"지은 Kim"}"#) == true)
        let next = try phone.ask(#"PUSH contacts.person 7 base=2 schema=1 {"fullName":"지은 Lee"}"#)
        #expect(fields(next)["outcome"] == "advanced")
    }
}
