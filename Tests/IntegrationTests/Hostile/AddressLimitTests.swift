import Foundation
import TestSupport
import Testing
import Wire

@Suite("what one address may do")
struct AddressLimitTests {
    @Test("connections are counted by address, an IPv6 household as one, and given back")
    func connections() throws {
        let house = try House(BalancedClient.options + ["--max-connections-per-address", "3"])
        let daemon = house.daemon
        func isLetIn(_ host: String) throws -> (Bool, RawClient) {
            let client = try BalancedClient.connect(daemon, from: host, readsGreeting: false)
            let line = try client.line() ?? ""
            #expect(line.hasPrefix("IEUM 1 ") || line.hasPrefix("* BYE reason=too-many-connections retry-after="))
            return (line.hasPrefix("IEUM 1 "), client)
        }
        var clients: [RawClient] = []
        for number in 1...3 {
            let (isIn, client) = try isLetIn("2001:db8:1:2::\(number)")
            #expect(isIn)
            clients.append(client)
        }
        #expect(try !isLetIn("2001:db8:1:2:ffff::1").0)
        #expect(try isLetIn("2001:db8:1:3::1").0)
        #expect(try isLetIn("192.0.2.1").0)
        clients.removeLast()
        try eventually(60, "the free place is taken") { try isLetIn("2001:db8:1:2::9").0 }
    }

    @Test("wrong tokens from many connections of an address make its sign-ins wait, right ones too, and nobody else's")
    func wrongTries() throws {
        let house = try House(BalancedClient.options + ["--wrong-tries-per-address", "1/h:6"])
        let daemon = house.daemon
        let player = try newPlayer(daemon, through: "198.51.100.1")
        var answers: [String] = []
        for _ in 0..<10 {
            let client = try BalancedClient.connect(daemon, from: "192.0.2.66")
            answers.append(try client.ask("LOGIN \(player.token.dropLast(4))AAAA"))
        }
        #expect(answers.filter { $0.hasPrefix("ERR login-failed") }.count == 6)
        #expect(answers.suffix(4).allSatisfy { $0.hasPrefix("ERR too-many-tries retry-after=") })
        let victim = try BalancedClient.connect(daemon, from: "192.0.2.66")
        #expect(try victim.ask("LOGIN \(player.token)").hasPrefix("ERR too-many-tries retry-after="))
        #expect(try victim.ask("PING") == "OK", "the next command works")
        let other = try BalancedClient.connect(daemon, from: "192.0.2.67")
        #expect(try other.ask("LOGIN \(player.token)").hasPrefix("OK player="))
    }

    @Test("pairing codes cannot be guessed from many addresses: five tries kill a code")
    func guesses() throws {
        let house = try House(BalancedClient.options)
        let daemon = house.daemon
        let player = try newPlayer(daemon, through: "198.51.100.1")
        let code = fields(try player.client.ask("PAIR"))["code"] ?? ""
        let wrong = code.dropLast(1) + (code.last == "0" ? "1" : "0")
        for number in 1...5 {
            let client = try BalancedClient.connect(daemon, from: "192.0.2.\(number)")
            #expect(try client.ask("LINK \(wrong)").hasPrefix("ERR code-invalid"))
        }
        let late = try BalancedClient.connect(daemon, from: "192.0.2.99")
        #expect(try late.ask("LINK \(code)").hasPrefix("ERR code-invalid"), "the right one is dead as well")
        let again = fields(try player.client.ask("PAIR"))["code"] ?? ""
        #expect(try late.ask("LINK \(again)").hasPrefix("OK player="))
    }

    @Test("registrations and sign-ins are bounded each, told when to come again, and allowed then")
    func rates() throws {
        let house = try House(
            BalancedClient.options + ["--registrations-per-address", "1/s:2", "--sign-ins-per-address", "1/s:8"])
        let daemon = house.daemon
        func register() throws -> String {
            try BalancedClient.connect(daemon, from: "192.0.2.5").ask("REGISTER device=x")
        }
        // Side by side, so that no time passes between them.
        let crowd = try (0..<8).map { _ in try BalancedClient.connect(daemon, from: "192.0.2.5") }
        for client in crowd { try client.send("REGISTER device=x") }
        let answers = try crowd.map { try $0.reply().last ?? "" }
        #expect(answers.filter { $0.hasPrefix("OK player=") }.count >= 2, "\(answers)")
        let refused = try #require(answers.first { $0.hasPrefix("ERR rate-limited retry-after=") })
        let wait = try #require(Double(fields(refused)["retry-after"] ?? ""))
        #expect(wait > 0 && wait <= 1)
        try eventually(60, "registering is allowed again") { try register().hasPrefix("OK player=") }
        let player = try newPlayer(daemon, through: "198.51.100.1")
        func signIn() throws -> String {
            try BalancedClient.connect(daemon, from: "198.51.100.2").ask("LOGIN \(player.token)")
        }
        let signIns = try (0..<40).map { _ in try signIn() }
        #expect(signIns.contains { $0.hasPrefix("ERR rate-limited retry-after=") }, "\(signIns)")
        #expect(signIns.filter { $0.hasPrefix("OK ") }.count >= 8, "\(signIns)")
        try eventually(60, "signing in is allowed again") { try signIn().hasPrefix("OK player=") }
    }

    @Test("pushes are bounded by address, of all its players together, and told when to come again; others do not wait")
    func pushes() throws {
        let house = try House(BalancedClient.options + ["--pushes-per-address", "6/h:6"])
        let players = try (0..<3).map { _ in try newPlayer(house.daemon, through: "192.0.2.7").client }
        let stranger = try newPlayer(house.daemon, through: "192.0.2.8").client
        for number in 0..<6 {
            #expect(try players[number % 3].ask("PUSH g x\(number) base=0 {}").hasPrefix("OK outcome=created"))
        }
        for client in players {
            let answer = try client.ask("PUSH g y base=0 {}")
            #expect(answer.hasPrefix("ERR rate-limited retry-after="), "\(answer)")
            let wait = try #require(Double(fields(answer)["retry-after"] ?? ""))
            #expect(wait > 0 && wait <= 600, "\(answer)")
            #expect(try client.ask("GET g y").hasPrefix("ERR no-such-game"), "the next command works")
        }
        #expect(try stranger.ask("PUSH g y base=0 {}").hasPrefix("OK outcome=created"))
    }

    @Test("bytes are bounded by address, too; a large state is taken and what comes behind it waits, whoever sends it")
    func bytes() throws {
        let house = try House(BalancedClient.options + ["--bytes-per-address", "100000/s:50000"])
        let (one, _) = try newPlayer(house.daemon, through: "192.0.2.7")
        let (two, _) = try newPlayer(house.daemon, through: "192.0.2.7")
        let (stranger, _) = try newPlayer(house.daemon, through: "192.0.2.8")
        // Eight seconds' worth and more.
        let large = "\"" + String(repeating: "x", count: 900_000) + "\""
        #expect(try one.ask("PUSH g large base=0 \(large)").hasPrefix("OK outcome=created"))
        #expect(try two.ask("PUSH g small base=0 {}").hasPrefix("ERR rate-limited retry-after="))
        #expect(try stranger.ask("PUSH g small base=0 {}").hasPrefix("OK outcome=created"))
        try eventually(60, "the debt is paid back") {
            try two.ask("PUSH g small base=0 {}").hasPrefix("OK outcome=created")
        }
    }

    @Test("a wrong token, code or invite is answered late, and who is told to wait is told what is left of the wait")
    func lateRefusals() async throws {
        try await aside {
            let house = try House(
                BalancedClient.options + ["--wrong-tries-per-address", "1/h:3", "--registration", "invite"])
            let daemon = house.daemon
            let guessing = try BalancedClient.connect(daemon, from: "192.0.2.66")
            for line in ["LOGIN \(Self.unknownToken)", "LINK AAAA-AAAA", "REGISTER invite=AAAA-AAAA-AAAA-AAAA"] {
                let begin = ContinuousClock.now
                // What needs no database is answered behind it, in order.
                try guessing.send(line + "\nPING")
                let answer = try guessing.reply().last ?? ""
                #expect(answer.hasPrefix("ERR ") && !answer.contains("retry-after="), "\(answer)")
                #expect(ContinuousClock.now - begin >= .milliseconds(500), "\(line)")
                #expect(try guessing.reply() == ["OK"])
            }
            let begin = ContinuousClock.now
            let answer = try guessing.ask("LOGIN \(Self.unknownToken)")
            let wait = try #require(Double(fields(answer)["retry-after"] ?? ""), "\(answer)")
            #expect(answer.hasPrefix("ERR too-many-tries "), "\(answer)")
            #expect(ContinuousClock.now - begin >= .milliseconds(500))
            #expect(wait < 3_599.5 && wait > 1_800)
        }
    }

    @Test("whoever waits for a late refusal is not signed in meanwhile: the time for that ends it")
    func lateRefusalsTakeTime() async throws {
        try await aside {
            let house = try House(["--login-timeout", "1"])
            let guessing = try RawClient(port: house.daemon.port)
            // Fewer tries than a connection may have; each takes half a second.
            for _ in 1...4 { try guessing.send("LOGIN \(Self.unknownToken)") }
            var lines: [String] = []
            while let line = try guessing.line() { lines.append(line) }
            #expect(lines.last?.hasPrefix("* BYE reason=login-timeout") == true, "\(lines)")
            #expect(lines.count < 5 && lines.dropLast().allSatisfy { $0.hasPrefix("ERR login-failed") }, "\(lines)")
        }
    }

    @Test("whoever says much before signing in is heard slowly, in order, and as fast as others once signed in")
    func talkativeStranger() async throws {
        try await aside {
            let house = try House([])
            let stranger = try RawClient(port: house.daemon.port)
            func timeOfPings(_ count: Int) throws -> Duration {
                let begin = ContinuousClock.now
                try stranger.send(Array(repeating: "PING", count: count).joined(separator: "\n"))
                for _ in 0..<count { #expect(try stranger.reply() == ["OK"]) }
                return ContinuousClock.now - begin
            }
            // The 32nd line is the first after which there is a rest.
            #expect(try timeOfPings(37) >= .milliseconds(500))
            let begin = ContinuousClock.now
            for _ in 0..<3 { #expect(try stranger.ask("NONSENSE").hasPrefix("ERR ")) }
            #expect(ContinuousClock.now - begin >= .milliseconds(200))
            let answer = try stranger.ask("REGISTER device=phone")
            #expect(answer.hasPrefix("OK player="), "\(answer)")
            #expect(try timeOfPings(200) < .seconds(10), "twenty seconds at a stranger's pace")
        }
    }

    @Test("a daemon that stops tells what it was to tell late")
    func lateRefusalsWhenStopping() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo, metrics: "127.0.0.1:0")
        let monitoring = try daemon.metricsPort()
        let guessing = try RawClient(port: daemon.port)
        try guessing.send("LOGIN \(Self.unknownToken)")
        try eventually(60, "the token was looked up") {
            try metric("ieum_sign_ins_failed_total", port: monitoring) == 1
        }
        #expect(daemon.stop() == 0)
        #expect(try guessing.line()?.hasPrefix("ERR login-failed ") == true)
        #expect(try guessing.line()?.hasPrefix("* BYE reason=shutting-down ") == true)
        #expect(try guessing.line() == nil)
    }

    /// A token of no device.
    private static let unknownToken =
        Token(player: PlayerID(UUID()), device: DeviceID(UUID()), secret: Array(repeating: 1, count: 32))?.text ?? ""

    @Test("a balancer that sends no header, a wrong one or half of one is cut off, and others are served meanwhile")
    func headers() throws {
        let house = try House(BalancedClient.options + ["--handshake-timeout", "5"])
        let daemon = house.daemon
        let healthy = try BalancedClient.connect(daemon, from: "192.0.2.1")
        let silent = try [Array("LOGIN x\n".utf8), Array(BalancedClient.header(from: "192.0.2.2").prefix(20)), []].map {
            let client = try RawClient(port: daemon.port, readsGreeting: false)
            try client.send($0)
            return client
        }
        for client in silent {
            #expect(try healthy.ask("PING") == "OK")
            #expect(try client.line() == nil, "closed without a word")
        }
        #expect(try healthy.ask("PING") == "OK")
    }

    @Test(
        "connections whose header has not come take places, too: one more is closed, and a place that is free is taken")
    func headersTakePlaces() throws {
        let house = try House(BalancedClient.options + ["--max-connections", "3", "--handshake-timeout", "600"])
        let client = try BalancedClient.connect(house.daemon, from: "192.0.2.1")
        var silent = try (0..<2).map { _ in try RawClient(port: house.daemon.port, readsGreeting: false) }
        // In the order in which they came: when the third is gone, the two before it are there.
        #expect(try RawClient(port: house.daemon.port, readsGreeting: false).line() == nil, "closed without a word")
        #expect(try client.ask("PING") == "OK")
        silent.removeLast()
        try eventually(60, "the free place is taken") {
            let next = try RawClient(port: house.daemon.port, readsGreeting: false)
            // It may have been closed by now.
            try? next.send(BalancedClient.header(from: "192.0.2.2"))
            return try next.line()?.hasPrefix("IEUM 1 ") == true
        }
        #expect(silent.count == 1)
    }

    @Test("a header from elsewhere than a balancer is not believed")
    func strangers() throws {
        let house = try House(["--proxy-protocol", "192.0.2.0/24"])
        let daemon = house.daemon
        let client = try RawClient(port: daemon.port)
        try client.send(BalancedClient.header(from: "203.0.113.9"))
        #expect(try client.reply().last?.hasPrefix("ERR ") == true)
    }
}

/// A player made through a balancer.
func newPlayer(_ daemon: DaemonProcess, through host: String) throws -> (client: RawClient, token: String) {
    let client = try BalancedClient.connect(daemon, from: host)
    let answer = try client.ask("REGISTER device=one")
    guard let token = fields(answer)["token"] else { throw SocketError(call: "REGISTER: \(answer)", code: 0) }
    return (client, token)
}
