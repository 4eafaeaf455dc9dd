import Foundation
import TestSupport
import Testing

@Suite("going back in time")
struct RestoreTests {
    private func pushes(_ numbers: ClosedRange<Int>) -> [String] {
        numbers.map { "PUSH g x saved=2026-11-29T12:0\($0):00Z base=\($0 - 1) {\"n\":\($0)}" }
    }

    @Test("a restored backup begins a new epoch, and what it had lost is taken again, with its old bases")
    func restores() throws {
        let folder = try TestFolder("dump")
        let dump = folder.path + "/dump"
        let database = try TestDatabase.migrated()
        var daemon = try DaemonProcess(database: database.conninfo)
        var client = try RawClient(port: daemon.port, readsGreeting: false)
        let oldEpoch = fields(try client.line() ?? "")["epoch"]
        let token = try #require(fields(try client.ask("REGISTER"))["token"])
        for push in pushes(1...2) { #expect(try client.ask(push).hasPrefix("OK ")) }
        try Backup.take(of: database, to: dump)
        for push in pushes(3...5) { #expect(try client.ask(push).hasPrefix("OK outcome=advanced ")) }
        #expect(daemon.stop() == 0)

        try Backup.bringBack(dump, to: database)
        let named = try Programs.run("ieumd", ["restore-epoch", "--database", database.conninfo])
        #expect(named.status == 0, "\(named.error)")

        daemon = try DaemonProcess(database: database.conninfo)
        client = try RawClient(port: daemon.port, readsGreeting: false)
        let epoch = fields(try client.line() ?? "")["epoch"] ?? ""
        #expect(epoch.count == 36)
        #expect(epoch != oldEpoch)
        #expect(named.output == "epoch \(epoch)\n")
        #expect(fields(try client.ask("LOGIN \(token)"))["revision"] == "2")
        #expect(try client.ask("PULL since=5").hasPrefix("ERR cursor-ahead revision=2 "))
        #expect(try client.ask("WATCH since=5").hasPrefix("ERR cursor-ahead revision=2 "))
        // The device offers all that it holds, as it was.
        let answers = try pushes(1...5).map { fields(try client.ask($0)) }
        #expect(answers.map { $0["outcome"] } == ["repeated", "repeated", "advanced", "advanced", "advanced"])
        #expect(answers.map { $0["revision"] } == ["1", "2", "3", "4", "5"])
        try client.send("GET g x")
        #expect(try client.reply().first?.hasSuffix(" {\"n\":5}") == true)
        #expect(try client.ask("PULL since=5") == "END cursor=5 more=false")
    }

    @Test(
        "a device that lost its newest saves on the server alone offers them without their chain, and they are stored")
    func offersLatestAlone() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (client, _) = try newPlayer(daemon)
        for push in pushes(1...2) { #expect(try client.ask(push).hasPrefix("OK ")) }
        // Its base is a revision that the server never gave: as if there were none.
        let answer = fields(try client.ask("PUSH g x saved=2026-11-29T12:05:00Z base=4 {\"n\":5}"))
        #expect(answer["outcome"] == "won")
        #expect(answer["rival"] == "2")
    }

    @Test("a new epoch under a running daemon ends its sessions with the reason, and the next greeting tells it")
    func whileRunning() async throws {
        try await aside {
            let database = try TestDatabase.migrated()
            let daemon = try DaemonProcess(database: database.conninfo)
            let client = try RawClient(port: daemon.port)
            let named = try Programs.run("ieumd", ["restore-epoch", "--database", database.conninfo])
            #expect(named.status == 0)
            #expect(try client.line(timeout: 60)?.hasPrefix("* BYE reason=epoch-changed ") == true)
            #expect(try client.line() == nil)
            let next = try RawClient(port: daemon.port, readsGreeting: false)
            #expect(named.output == "epoch \(fields(try next.line() ?? "")["epoch"] ?? "")\n")
        }
    }
}
