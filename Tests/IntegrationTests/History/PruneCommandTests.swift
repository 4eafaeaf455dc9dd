import Foundation
import TestSupport
import Testing

@Suite("ieumd prune")
struct PruneCommandTests {
    @Test(
        "beside a daemon: old versions go, heads and tombstones stay, and a device that comes back late harms nothing")
    func besideDaemon() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (phone, _) = try newPlayer(daemon)
        let code = try #require(fields(try phone.ask("PAIR"))["code"])
        let tablet = try RawClient(port: daemon.port)
        #expect(try tablet.ask("LINK \(code) device=tablet").hasPrefix("OK "))
        for (number, line) in ["g x base=0", "g x base=1", "g x base=2", "g y base=0"].enumerated() {
            #expect(try phone.ask("PUSH \(line) {\"n\":\(number)}").contains("revision=\(number + 1)"))
        }
        #expect(try phone.ask("DELETE g y base=4").contains("revision=5"))
        let connection = try database.connect()
        try connection.execute(
            "UPDATE game_versions SET received = received - interval '100 days', saved = saved - interval '100 days', stamp = stamp - interval '100 days'"
        )
        try connection.execute(
            "UPDATE games SET saved = saved - interval '100 days', stamp = stamp - interval '100 days', latest_saved = latest_saved - interval '100 days'"
        )
        #expect(try phone.ask("PUSH g x base=3 {\"n\":9}").contains("outcome=advanced revision=6"))

        let place = ["--database", database.conninfo, "--older-than", "90d"]
        let trial = try Programs.run("ieumd", ["prune", "--dry-run"] + place)
        #expect(trial.status == 0 && trial.error == "")
        #expect(trial.output.hasPrefix("would remove 4 of 6 versions, 28 bytes of states, of 1 players"), "\(trial)")
        let kept = try Programs.run("ieumd", ["prune", "--dry-run", "--json", "--keep", "2"] + place)
        #expect(kept.output.contains("\"deleted\":2,"), "\(kept)")
        let done = try Programs.run("ieumd", ["prune", "--json"] + place)
        #expect(
            done.output
                == "{\"dryRun\":false,\"seen\":6,\"deleted\":4,\"octets\":28,\"players\":1,\"losers\":0,\"tombstones\":0}\n"
        )
        let again = try Programs.run("ieumd", ["prune"] + place)
        #expect(again.output.hasPrefix("removed 0 of 2 versions"))
        #expect(try connection.query("SELECT purged_before FROM players").int8(0, 0) == 5)

        // The tablet saw revision 1 and then nothing: its cursor still finds all that is.
        try tablet.send("PULL since=1")
        let lines = try tablet.reply()
        #expect(
            lines.count == 3 && lines[0].contains("g y revision=5 ") && lines[1].contains("g x revision=6 "), "\(lines)"
        )
        // Its own saves of those days carry bases that are gone: neither overwrites, and the deleted game stays deleted.
        let day = "2020-01-01T00:00:00Z"
        #expect(try fields(tablet.ask("PUSH g y base=4 saved=\(day) {\"n\":4}"))["outcome"] == "lost")
        #expect(try fields(tablet.ask("PUSH g x base=1 saved=\(day) {\"n\":5}"))["outcome"] == "lost")
        #expect(try fields(tablet.ask("PUSH g z base=0 {\"n\":6}"))["outcome"] == "created")
    }

    @Test(
        "an age that is none is refused, with what it takes",
        arguments: ["", "90", "0d", "d", "-1d", "9 d", "1y", "99999999999999999999d", "٣d"])
    func badAge(text: String) throws {
        let result = try Programs.run("ieumd", ["prune", "--older-than=\(text)", "--database", "host=/nowhere"])
        #expect(result.status == 2 && result.output == "" && result.error.contains("--older-than takes"), "\(result)")
    }

    @Test("without a schema it says to migrate")
    func noSchema() throws {
        let database = try TestDatabase.make()
        let result = try Programs.run("ieumd", ["prune", "--older-than", "1d", "--database", database.conninfo])
        #expect(result.status == 4 && result.error.contains("ieumd migrate up"), "\(result)")
    }
}
