import Foundation
import TestSupport
import Testing

/// One daemon for the tests that do it no harm.
private let sharedDaemon = Result { try DaemonProcess() }

/// Signs a new player up and gives the connection.
func newPlayer(_ daemon: DaemonProcess, device: String = "phone") throws -> (client: RawClient, token: String) {
    let client = try RawClient(port: daemon.port)
    let answer = fields(try client.ask("REGISTER device=\"\(device)\""))
    return (client, try #require(answer["token"]))
}

/// Links another device of the player that is signed in on `client`.
func linkedDevice(_ daemon: DaemonProcess, of client: RawClient, name: String = "tablet") throws -> RawClient {
    let code = try #require(fields(try client.ask("PAIR"))["code"])
    let other = try RawClient(port: daemon.port)
    #expect(try other.ask("LINK \(code) device=\(name)").hasPrefix("OK "))
    return other
}

@Suite("two devices of one player")
struct DevicesTests {
    let daemon: DaemonProcess

    init() throws { daemon = try sharedDaemon.get() }

    @Test("a game saved on one device continues on another, byte for byte")
    func continues() throws {
        let (phone, _) = try newPlayer(daemon)
        let tablet = try linkedDevice(daemon, of: phone)
        let state = #"{"answer": "사람",  "rows":[1,2 ,3],"x":1e2,"x":2}"#
        let pushed = fields(try phone.ask("PUSH handle.game today saved=2026-11-29T12:00:00Z base=0 schema=3 \(state)"))
        #expect(pushed["outcome"] == "created")
        #expect(pushed["revision"] == "1")
        try tablet.send("PULL since=0")
        let lines = try tablet.reply()
        #expect(lines.count == 2)
        #expect(lines[0].hasPrefix("GAME handle.game today revision=1 "))
        #expect(lines[0].hasSuffix(" schema=3 \(state)") || lines[0].hasSuffix(" \(state)"))
        #expect(lines[1] == "END cursor=1 more=false")
        let continued = fields(try tablet.ask("PUSH handle.game today base=1 {\"row\":2}"))
        #expect(continued["outcome"] == "advanced")
        #expect(continued["revision"] == "2")
    }

    @Test(
        "of two saves that did not know each other the later wins, and the loser learns the head and stays in history")
    func conflicts() throws {
        let (phone, _) = try newPlayer(daemon)
        let tablet = try linkedDevice(daemon, of: phone)
        _ = try phone.ask("PUSH g x saved=2026-11-29T12:00:00Z base=0 {\"n\":0}")
        let won = fields(try tablet.ask("PUSH g x saved=2026-11-29T12:05:00Z base=1 {\"n\":2}"))
        #expect(won["outcome"] == "advanced")
        let lost = try phone.ask("PUSH g x saved=2026-11-29T12:04:00Z base=1 {\"n\":1}")
        #expect(fields(lost)["outcome"] == "lost")
        #expect(fields(lost)["rival"] == "2")
        #expect(fields(lost)["head"] == "2")
        #expect(lost.hasSuffix("{\"n\":2}"))
        let later = fields(try phone.ask("PUSH g x saved=2026-11-29T12:06:00Z base=1 {\"n\":3}"))
        #expect(later["outcome"] == "won")
        #expect(later["rival"] == "2")
        try tablet.send("HISTORY g x")
        let history = try tablet.reply()
        #expect(history.count == 5)
        #expect(history.dropLast().map { fields($0)["outcome"] } == ["won", "lost", "advanced", "created"])
        try tablet.send("GET g x revision=3")
        #expect(try tablet.reply()[0].hasSuffix("{\"n\":1}"))
    }

    @Test("a repeated push gives the first answer again and adds no row; another state under its key is refused")
    func repeats() throws {
        let (phone, _) = try newPlayer(daemon)
        let push = "PUSH g x saved=2026-11-29T12:00:00Z base=0 {\"n\":1}"
        let first = fields(try phone.ask(push))
        let second = fields(try phone.ask(push))
        #expect(second["outcome"] == "repeated")
        #expect(second["first"] == "created")
        #expect(second["revision"] == first["revision"])
        #expect(try phone.ask("PUSH g x saved=2026-11-29T12:00:00Z base=0 {\"n\":2}").hasPrefix("ERR saved-reused "))
        try phone.send("HISTORY g x")
        #expect(try phone.reply().count == 2)
    }

    @Test("a fresh install never overwrites progress")
    func freshInstall() throws {
        let (phone, _) = try newPlayer(daemon)
        _ = try phone.ask("PUSH g x base=0 {\"level\":40}")
        let tablet = try linkedDevice(daemon, of: phone)
        let fresh = fields(try tablet.ask("PUSH g x saved=2039-01-01T00:00:00Z base=0 {\"level\":1}"))
        #expect(fresh["outcome"] == "lost")
        try phone.send("GET g x")
        #expect(try phone.reply()[0].hasSuffix("{\"level\":40}"))
    }

    @Test("a delete is a version too, reaches the other device, and a later push revives the game")
    func deletes() throws {
        let (phone, _) = try newPlayer(daemon)
        let tablet = try linkedDevice(daemon, of: phone)
        _ = try phone.ask("PUSH g x base=0 {\"n\":1}")
        #expect(fields(try phone.ask("DELETE g x base=1"))["outcome"] == "advanced")
        try tablet.send("PULL since=1")
        #expect(try tablet.reply()[0].hasPrefix("GONE g x revision=2 "))
        #expect(fields(try tablet.ask("PUSH g x base=2 {\"n\":2}"))["outcome"] == "advanced")
    }

    @Test("a watcher hears of another device's push, and pulls it")
    func watches() throws {
        let (phone, _) = try newPlayer(daemon)
        let tablet = try linkedDevice(daemon, of: phone)
        #expect(try tablet.ask("WATCH since=0").hasPrefix("OK"))
        _ = try phone.ask("PUSH g x base=0 {\"n\":1}")
        #expect(try tablet.line() == "* CHANGED revision=1")
        _ = try tablet.ask("UNWATCH")
        _ = try phone.ask("PUSH g x base=1 {\"n\":2}")
        // Who watches is told before who pushed is answered; a notice that came would stand before this.
        for line in ["PING", "WATCH since=2", "PING"] {
            try tablet.send(line)
            let answer = try tablet.line()
            #expect(answer == (line == "PING" ? "OK" : "OK revision=2"))
        }
    }

    @Test("what came between a pull and the watch is told at once")
    func watchesFromCursor() throws {
        let (phone, _) = try newPlayer(daemon)
        let tablet = try linkedDevice(daemon, of: phone)
        _ = try phone.ask("PUSH g x base=0 {\"n\":1}")
        try tablet.send("WATCH since=0")
        #expect(try tablet.reply().last?.hasPrefix("OK") == true)
        #expect(try tablet.line() == "* CHANGED revision=1")
    }

    @Test("a device that is revoked while it pushes is refused and hung up on within a second")
    func revoked() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (other, _) = try newPlayer(daemon)
        let admin = try database.connect()
        let isSoon = try isInTime(.seconds(1)) {
            let (phone, _) = try newPlayer(daemon)
            #expect(fields(try phone.ask("PUSH g x {\"n\":0}"))["outcome"] == "created")
            _ = try admin.query(
                "UPDATE devices SET revoked = now() WHERE player_id IN (SELECT player_id FROM games)")
            let start = ContinuousClock.now
            var last = ""
            var number = 0
            while !last.hasPrefix("ERR"), ContinuousClock.now - start < .seconds(60) {
                number += 1
                last = try phone.ask("PUSH g x {\"n\":\(number)}")
            }
            let took = ContinuousClock.now - start
            #expect(last.hasPrefix("ERR device-revoked "))
            #expect(try phone.line()?.hasPrefix("* BYE reason=device-revoked") == true)
            return took
        }
        #expect(isSoon)
        #expect(fields(try other.ask("PUSH g x {\"n\":0}"))["outcome"] == "created")
        _ = daemon.stop()
    }

    @Test("the same token works on a new connection, and a wrong one does not")
    func signsIn() throws {
        let (phone, token) = try newPlayer(daemon)
        _ = try phone.ask("PUSH g x base=0 {\"n\":1}")
        let again = try RawClient(port: daemon.port)
        #expect(fields(try again.ask("LOGIN \(token)"))["revision"] == "1")
        let wrong = try RawClient(port: daemon.port)
        let forged = String(token.dropLast(4)) + "AAAA"
        #expect(try wrong.ask("LOGIN \(forged)").hasPrefix("ERR "))
        #expect(try wrong.ask("PULL since=0").hasPrefix("ERR not-signed-in "))
    }

    @Test("another player's games cannot be read, written or watched")
    func separates() throws {
        let (alice, _) = try newPlayer(daemon)
        let (bob, _) = try newPlayer(daemon)
        _ = try alice.ask("PUSH g x base=0 {\"secret\":1}")
        #expect(try bob.ask("GET g x").hasPrefix("ERR no-such-game "))
        #expect(try bob.ask("PULL since=0") == "END cursor=0 more=false")
        #expect(try bob.ask("PULL since=1").hasPrefix("ERR cursor-ahead "))
        #expect(try bob.ask("HISTORY g x").hasPrefix("ERR no-such-game "))
        #expect(fields(try bob.ask("PUSH g x base=0 {\"own\":1}"))["outcome"] == "created")
        #expect(fields(try alice.ask("PUSH g x base=1 {\"secret\":2}"))["outcome"] == "advanced")
    }

    @Test("a pairing code works once, and dies after five wrong tries")
    func pairing() throws {
        let (phone, _) = try newPlayer(daemon)
        let code = try #require(fields(try phone.ask("PAIR"))["code"])
        let tablet = try RawClient(port: daemon.port)
        #expect(try tablet.ask("LINK \(code.lowercased()) device=tablet").hasPrefix("OK "))
        let late = try RawClient(port: daemon.port)
        #expect(try late.ask("LINK \(code) device=late").hasPrefix("ERR code-invalid "))

        let second = try #require(fields(try phone.ask("PAIR"))["code"])
        let wrong = second.prefix(5) + (second.hasSuffix("0000") ? "1111" : "0000")
        for _ in 0..<5 {
            let guesser = try RawClient(port: daemon.port)
            #expect(try guesser.ask("LINK \(wrong) device=guess").hasPrefix("ERR code-invalid "))
        }
        let honest = try RawClient(port: daemon.port)
        #expect(try honest.ask("LINK \(second) device=honest").hasPrefix("ERR "))
    }

    @Test("of many that use one code at once, at two daemons, exactly one gets in")
    func codeRace() async throws {
        let daemons = try TwoDaemons()
        try await aside {
            let (phone, _, _, _) = try daemons.player()
            for _ in 0..<10 {
                let code = try #require(fields(try phone.ask("PAIR"))["code"])
                let clients = try (0..<5).map { try RawClient(port: daemons.daemons[$0 % 2].port) }
                for client in clients { try client.send("LINK \(code) device=guest") }
                let answers = try clients.map { try $0.line() ?? "" }
                #expect(answers.filter { $0.hasPrefix("OK player=") }.count == 1, "\(answers)")
                #expect(answers.filter { $0.hasPrefix("ERR code-invalid ") }.count == 4, "\(answers)")
            }
        }
        let count = try daemons.database.connect().query("SELECT count(*) FROM devices").int8(0, 0)
        #expect(count == 11)
    }

    @Test("of two codes that a player's devices make at once, one at most lets a device in")
    func pairingRace() throws {
        let (phone, token) = try newPlayer(daemon)
        let tablet = try RawClient(port: daemon.port)
        #expect(try tablet.ask("LOGIN \(token)").hasPrefix("OK "))
        for _ in 0..<20 {
            try phone.send("PAIR")
            try tablet.send("PAIR")
            let codes = try [phone, tablet].map { try #require(fields($0.reply().last ?? "")["code"]) }
            var linked = 0
            for code in codes {
                let guest = try RawClient(port: daemon.port)
                if try guest.ask("LINK \(code) device=guest").hasPrefix("OK ") { linked += 1 }
            }
            #expect(linked <= 1)
        }
    }
}
