import Foundation
import Testing

@Suite("what one player may do")
struct PlayerLimitTests {
    @Test("connections are counted by player; another player's are not")
    func connections() throws {
        let house = try House(["--max-connections-per-player", "2"])
        let daemon = house.daemon
        let (first, token) = try newPlayer(daemon)
        let second = try RawClient(port: daemon.port)
        #expect(try second.ask("LOGIN \(token)").hasPrefix("OK "))
        let third = try RawClient(port: daemon.port)
        try third.send("LOGIN \(token)")
        #expect(try third.line()?.hasPrefix("* BYE reason=too-many-connections retry-after=") == true)
        #expect(try newPlayer(daemon).client.ask("PING") == "OK")
        #expect(try first.ask("PING") == "OK" && second.ask("PING") == "OK")
        second.finishSending()
        try eventually(60, "the free place is taken") {
            let client = try RawClient(port: daemon.port)
            try client.send("LOGIN \(token)")
            return try client.line()?.hasPrefix("OK ") == true
        }
    }

    @Test("a device that joins a player with as many connections as there may be gets its token before the end")
    func joining() throws {
        let house = try House(["--max-connections-per-player", "1"])
        let (first, _) = try newPlayer(house.daemon)
        let code = try #require(fields(try first.ask("PAIR"))["code"])
        let joining = try RawClient(port: house.daemon.port)
        // What comes right behind it is not done.
        try joining.send("LINK \(code) device=tablet\nPUSH g x base=0 {}\n".utf8)
        let answer = try #require(try joining.line())
        let token = try #require(fields(answer)["token"])
        #expect(answer.hasPrefix("OK "))
        #expect(try joining.line()?.hasPrefix("* BYE reason=too-many-connections retry-after=") == true)
        let found = try first.ask("GET g x")
        #expect(found.hasPrefix("ERR no-such-game "), "\(found)")
        first.finishSending()
        try eventually(60, "the place is free") {
            let client = try RawClient(port: house.daemon.port)
            try client.send("LOGIN \(token)")
            return try client.line()?.hasPrefix("OK ") == true
        }
    }

    @Test("pushes beyond the rate are told when to come again, and then taken; none is lost, none stored twice")
    func pushes() throws {
        let house = try House(["--pushes-per-player", "20/s:5"])
        let daemon = house.daemon
        let client = try newPlayer(daemon).client
        var waiting = Array(1...60)
        var refusals = 0
        while !waiting.isEmpty {
            try client.send(waiting.map { "PUSH g x\($0) base=0 {}\n" }.joined().utf8)
            waiting = try waiting.filter { _ in
                let answer = try client.reply().last ?? ""
                if answer.hasPrefix("OK outcome=created") { return false }
                #expect(answer.hasPrefix("ERR rate-limited retry-after="))
                refusals += 1
                return true
            }
        }
        #expect(refusals > 0)
        #expect(try client.ask("PULL since=0 limit=100").hasPrefix("END cursor=60 more=false"))
        let other = try newPlayer(daemon).client
        #expect(try other.ask("PUSH g x base=0 {}").hasPrefix("OK outcome=created"))
    }

    @Test("it is the player's rate, whatever connection a push comes by, and no other player's")
    func pushesOfTwoConnections() throws {
        let house = try House(["--pushes-per-player", "1/h:4"])
        let (client, token) = try newPlayer(house.daemon)
        let second = try RawClient(port: house.daemon.port)
        #expect(try second.ask("LOGIN \(token)").hasPrefix("OK "))
        for (number, connection) in [client, second, second, client].enumerated() {
            #expect(try connection.ask("PUSH g x\(number) base=0 {}").hasPrefix("OK outcome=created"))
        }
        for connection in [client, second] {
            let answer = try connection.ask("PUSH g y base=0 {}")
            #expect(answer.hasPrefix("ERR rate-limited retry-after="), "\(answer)")
        }
        let other = try newPlayer(house.daemon).client
        #expect(try other.ask("PUSH g y base=0 {}").hasPrefix("OK outcome=created"))
    }

    @Test(
        "behind a push beyond the rate no line is read until it may come again; what was accepted is answered meanwhile"
    )
    func holdingBack() throws {
        let house = try House(["--pushes-per-player", "5/s:5"])
        let (client, token) = try newPlayer(house.daemon)
        let begin = ContinuousClock.now
        try client.send((1...30).map { "PUSH g x\($0) base=0 {}\n" }.joined().utf8)
        let answers = try (1...30).map { _ in try client.reply().last ?? "" }
        let refused = answers.map { $0.hasPrefix("ERR rate-limited retry-after=") }
        #expect(answers.indices.allSatisfy { refused[$0] || answers[$0].hasPrefix("OK outcome=created") }, "\(answers)")
        // A fifth of a second behind each refusal, there is room for one.
        #expect(!zip(refused, refused.dropFirst()).contains { $0 && $1 }, "\(answers)")
        let refusals = refused.filter { $0 }.count
        #expect(refusals >= 3, "\(answers)")
        #expect(ContinuousClock.now - begin >= .milliseconds(150) * (refusals - 1))
        // No other command waits for it on another connection.
        let other = try RawClient(port: house.daemon.port)
        #expect(try other.ask("LOGIN \(token)").hasPrefix("OK "))
        #expect(try other.ask("GET g x1").hasPrefix("END"))
    }

    @Test("bytes beyond the rate, too; one large state is never impossible")
    func bytes() throws {
        let house = try House(["--bytes-per-player", "100000/s:50000"])
        let daemon = house.daemon
        let client = try newPlayer(daemon).client
        // Eight seconds' worth and more.
        let large = "\"" + String(repeating: "x", count: 900_000) + "\""
        #expect(try client.ask("PUSH g large base=0 \(large)").hasPrefix("OK outcome=created"))
        #expect(try client.ask("PUSH g small base=0 {\"a\":1}").hasPrefix("ERR rate-limited retry-after="))
        try eventually(60, "the debt is paid back") {
            try client.ask("PUSH g small base=0 {\"a\":1}").hasPrefix("OK outcome=created")
        }
    }

    @Test("who does not sign in, and who sends a line drop by drop, is told so and closed in time")
    func slow() async throws {
        try await aside {
            let house = try House(["--login-timeout", "5", "--line-timeout", "5"])
            let daemon = house.daemon
            let silent = try RawClient(port: daemon.port)
            let (dripping, token) = try newPlayer(daemon)
            let healthy = try RawClient(port: daemon.port)
            #expect(try healthy.ask("LOGIN \(token)").hasPrefix("OK "))
            let begin = ContinuousClock.now
            while !dripping.hasInput(within: 0.1), ContinuousClock.now - begin < .seconds(30) {
                try dripping.send([0x50])
            }
            #expect(try dripping.line()?.hasPrefix("* BYE reason=line-timeout") == true)
            #expect(try silent.line()?.hasPrefix("* BYE reason=login-timeout") == true)
            #expect(ContinuousClock.now - begin > .seconds(1))
            #expect(try healthy.ask("PING") == "OK")
        }
    }

    @Test(
        "a line that comes slowly and steadily is taken, however long that is; one that never ends buys no time for ever"
    )
    func slowUpload() async throws {
        try await aside {
            let house = try House([
                "--line-timeout", "3", "--min-line-rate", "1000", "--max-line", "40000", "--idle-timeout", "60",
            ])
            let (uploading, token) = try newPlayer(house.daemon)
            let endless = try RawClient(port: house.daemon.port)
            #expect(try endless.ask("LOGIN \(token)").hasPrefix("OK "))
            let begin = ContinuousClock.now
            try uploading.send("PUSH g x base=0 \"".utf8)
            // 30,000 bytes at 3,000 a second; beside it, at the same pace, a line that is too long and does not end.
            for _ in 0..<100 {
                try uploading.send([UInt8](repeating: 0x78, count: 300))
                try? endless.send([UInt8](repeating: 0x78, count: 1_000))
                usleep(100_000)
            }
            try uploading.send("\"\n".utf8)
            #expect(try uploading.line()?.hasPrefix("OK outcome=created") == true)
            #expect(ContinuousClock.now - begin > .seconds(9))
            #expect(try endless.line()?.hasPrefix("ERR line-too-long") == true)
            // At most as if it were as long as a line may be: 3 s and 40 s, from when it was too long.
            while !endless.hasInput(within: 0.01), ContinuousClock.now - begin < .seconds(80) {
                try? endless.send([UInt8](repeating: 0x78, count: 20_000))
                usleep(50_000)
            }
            #expect(try endless.line()?.hasPrefix("* BYE reason=line-timeout") == true)
        }
    }

    @Test(
        "what makes no push has rates of its own: one that is used up is told, by whatever device, and leaves the others",
        arguments: [
            ("--renames-per-player", "RENAME"), ("--revocations-per-player", "REVOKE"),
            ("--rotations-per-player", "ROTATE"), ("--pairing-codes-per-player", "PAIR"),
        ])
    func deviceChanges(option: String, verb: String) throws {
        let house = try House([option, "1/h:3"])
        let daemon = house.daemon
        let (client, token) = try newPlayer(daemon)
        let second = try RawClient(port: daemon.port)
        let signIn = fields(try second.ask("LOGIN \(token)"))
        let device = try #require(signIn["device"])
        // Each is one that does no harm here.
        let lines = [
            "RENAME": "RENAME \(device) name=phone", "REVOKE": "REVOKE 3f2a9c01-7d5e-4c2b-9a41-0b6f3d2e8c17",
            "ROTATE": "ROTATE", "PAIR": "PAIR",
        ]
        let line = try #require(lines[verb])
        for client in [client, second, client] {
            let answer = try client.ask(line)
            #expect(answer.hasPrefix("OK") || answer.hasPrefix("ERR no-such-device"), "\(answer)")
        }
        for client in [client, second] {
            let answer = try client.ask(line)
            #expect(answer.hasPrefix("ERR rate-limited retry-after="), "\(answer)")
            #expect((fields(answer)["retry-after"].flatMap { Double($0) } ?? 0) > 1_000, "\(answer)")
        }
        for (other, line) in lines where other != verb {
            #expect(try !client.ask(line).hasPrefix("ERR rate-limited"), "\(line)")
        }
        #expect(try client.ask("PUSH g x base=0 {}").hasPrefix("OK "))
        let other = try newPlayer(daemon).client
        #expect(try !other.ask(line).hasPrefix("ERR rate-limited"))
    }

    @Test("before signing in a long line is refused and forgotten; right behind the sign-in it is taken")
    func strangersLines() throws {
        let house = try House([])
        let daemon = house.daemon
        let (_, token) = try newPlayer(daemon)
        let client = try RawClient(port: daemon.port)
        let long = "\"" + String(repeating: "x", count: 100_000) + "\""
        #expect(try client.ask("PUSH g x base=0 \(long)").hasPrefix("ERR line-too-long limit=4096"))
        #expect(try client.ask("LOGIN \(token.dropLast(4))AAAA").hasPrefix("ERR login-failed"))
        #expect(
            try client.ask("PUSH g x base=0 \(long)").hasPrefix("ERR line-too-long limit=4096"),
            "nor behind a wrong one")
        try client.send("LOGIN \(token)\nPUSH g x base=0 \(long)\n".utf8)
        #expect(try client.reply().last?.hasPrefix("OK player=") == true)
        #expect(try client.reply().last?.hasPrefix("OK outcome=created") == true)
    }

    @Test("unfinished lines of many connections cannot take more memory than there may be")
    func unfinishedLines() throws {
        let house = try House(["--max-pending", "8388608"])
        let daemon = house.daemon
        let before = try residentBytes(daemon.processID)
        let half = Array("PUSH g x base=0 \"".utf8) + [UInt8](repeating: 0x78, count: 1_000_000)
        let clients = try (0..<40).map { _ in try newPlayer(daemon).client }
        for client in clients {
            // The daemon may have hung up on this one by now.
            try? client.send(half)
        }
        var waiting = clients
        try eventually(60, "all are told for whom there is no room") {
            waiting = try waiting.filter { client in
                guard client.hasInput(within: 0) else { return true }
                let line = try client.line()
                #expect(line?.hasPrefix("* BYE reason=busy") == true, "\(line ?? "(closed)")")
                return false
            }
            return waiting.count <= 8
        }
        #expect(try residentBytes(daemon.processID) - before < 120 << 20)
        #expect(try newPlayer(daemon).client.ask("PUSH g x base=0 {}").hasPrefix("OK "))
    }
}
