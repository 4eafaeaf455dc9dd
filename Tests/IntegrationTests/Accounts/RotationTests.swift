import Foundation
import TestSupport
import Testing

@Suite("another token for a device")
struct RotationTests {
    private func rotate(_ client: RawClient) throws -> String {
        try #require(fields(try client.ask("ROTATE"))["token"])
    }

    @Test("both tokens hold until the new one signs in; then the old one and all its sessions end, at both daemons")
    func life() async throws {
        try await aside {
            let bench = try TwoDaemons()
            #expect(try isInTime(.seconds(3)) { try life(bench) })
        }
    }

    /// - Returns: how long the sessions of the old token stayed.
    private func life(_ bench: TwoDaemons) throws -> Duration {
        let (phone, _, _, old) = try bench.player()
        let watcher = try bench.login(old, at: 1)
        #expect(try watcher.ask("WATCH since=0") == "OK revision=0")
        let tablet = try bench.link(phone)
        let new = try rotate(phone)
        #expect(new != old && new.prefix(46) == old.prefix(46))
        _ = try bench.login(old, at: 1)
        #expect(try phone.ask("PUSH g x {\"n\":1}").hasPrefix("OK outcome=created "))
        #expect(try watcher.line() == "* CHANGED revision=1")
        let start = ContinuousClock.now
        let fresh = try bench.login(new, at: 1)
        let took = try bench.timeUntilGone([phone, watcher], "token-rotated", since: start)
        for place in 0..<2 {
            #expect(
                try RawClient(port: bench.daemons[place].port).ask("LOGIN \(old)").hasPrefix("ERR login-failed "))
            _ = try bench.login(new, at: place)
        }
        // The sessions of the new token stay, those of other devices too, in looks that read the end once more.
        try bench.waitUntilBothLooked()
        #expect(try fresh.ask("PUSH g x base=1 {\"n\":2}").hasPrefix("OK outcome=advanced "))
        #expect(try tablet.client.ask("PING") == "OK")
        // And again.
        let third = try rotate(fresh)
        _ = try bench.login(third, at: 0)
        _ = try bench.timeUntilGone([fresh], "token-rotated", since: .now)
        return took
    }

    @Test("an answer that is lost locks nobody out: the old token holds, and another rotation makes the lost one void")
    func lostAnswer() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (phone, old) = try newPlayer(daemon)
        let lost = try rotate(phone)
        daemon.kill()
        let second = try DaemonProcess(database: database.conninfo)
        let again = try RawClient(port: second.port)
        #expect(try again.ask("LOGIN \(old)").hasPrefix("OK "))
        let new = try rotate(again)
        #expect(try RawClient(port: second.port).ask("LOGIN \(lost)").hasPrefix("ERR login-failed "))
        #expect(try again.ask("PING") == "OK", "a void token ends nothing")
        #expect(try RawClient(port: second.port).ask("LOGIN \(new)").hasPrefix("OK "))
        #expect(try again.line()?.hasPrefix("* BYE reason=token-rotated ") == true)
    }

    @Test("a daemon that is killed after the answer, or during the first logins, leaves the new token valid")
    func killed() async throws {
        try await aside {
            let database = try TestDatabase.migrated()
            var daemon = try DaemonProcess(database: database.conninfo)
            var (client, token) = try newPlayer(daemon)
            for round in 0..<4 {
                let new = try rotate(client)
                if round % 2 == 1 { try RawClient(port: daemon.port).send("LOGIN \(new)") }
                daemon.kill()
                daemon = try DaemonProcess(database: database.conninfo)
                // At once from several places: one begins it, the others find it begun.
                let clients = try (0..<4).map { _ in try RawClient(port: daemon.port) }
                for client in clients { try client.send("LOGIN \(new)") }
                for client in clients { #expect(try client.line()?.hasPrefix("OK ") == true) }
                #expect(try RawClient(port: daemon.port).ask("LOGIN \(token)").hasPrefix("ERR login-failed "))
                (client, token) = (clients[0], new)
            }
        }
    }

    @Test("ieum devices rotate keeps the new token and signs in with it; nothing is lost where the daemon dies before")
    func commandLine() throws {
        let database = try TestDatabase.migrated()
        let port = Int(try FreePort.find())
        var daemon = try DaemonProcess(database: database.conninfo, port: port)
        let device = try CommandLineDevice(registeredAt: daemon)
        let file = device.home.appendingPathComponent("token")
        let old = try String(contentsOf: file, encoding: .utf8)
        let call = try device.run("devices", "rotate")
        #expect(call.status == 0, "\(call)")
        let new = try String(contentsOf: file, encoding: .utf8)
        #expect(new != old)
        #expect(!call.data.contains(new.suffix(20)) && !call.talk.contains(new.suffix(20)))
        #expect(try RawClient(port: port).ask("LOGIN \(old.dropLast())").hasPrefix("ERR login-failed "))
        #expect(try device.push("{\"n\":1}").status == 0)
        daemon.kill()
        #expect(try device.run("devices", "rotate").status == 4)
        daemon = try DaemonProcess(database: database.conninfo, port: port)
        #expect(try device.push("{\"n\":2}").status == 0)
        #expect(try device.run("devices", "rotate", "now").status == 2)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }
}
