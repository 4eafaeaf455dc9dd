import Foundation
import Testing

@Suite("how much there may be of one player")
struct QuotaTests {
    @Test("more games than there may be are refused, those that are there go on, and deleting makes room")
    func games() async throws {
        try await aside { try gamesInTurn() }
    }

    private func gamesInTurn() throws {
        let house = try House(["--max-games-per-player", "32"])
        let client = try newPlayer(house.daemon).client
        let stored = try fill(client, to: 32)
        let head = fields(try client.ask("PUSH g x1 base=1 {\"a\":1}"))
        #expect(head["outcome"] == "advanced")
        for number in 2...stored {
            #expect(try client.ask("DELETE g x\(number) base=\(number)").hasPrefix("OK outcome=advanced"))
        }
        // What was found holds for half a minute.
        try eventually(60, "there is room again") {
            try client.ask("PUSH g new base=0 {}").hasPrefix("OK outcome=created")
        }
        #expect(try newPlayer(house.daemon).client.ask("PUSH g x base=0 {}").hasPrefix("OK "))
    }

    @Test("whatever its base, a push of a game that is not there makes none more; one of a game that is there is taken")
    func foreignBases() throws {
        let house = try House(["--max-games-per-player", "32"])
        let client = try newPlayer(house.daemon).client
        let stored = try fill(client, to: 32)
        for base in ["base=0", "base=99999", "base=1", ""] {
            let answer = try client.ask("PUSH g y \(base) {}")
            #expect(answer.hasPrefix("ERR quota-exceeded limit=32"), "\(base): \(answer)")
        }
        // A deleted game is not there.
        let deletion = fields(try client.ask("DELETE g x2 base=2"))
        let base = try #require(deletion["revision"])
        #expect(try client.ask("PUSH g x2 base=\(base) {}").hasPrefix("ERR quota-exceeded limit=32"))
        // What a device has that knows no base, or repeats itself.
        #expect(try client.ask("PUSH g x1 {\"a\":1}").hasPrefix("OK outcome=won"))
        #expect(try client.ask("PUSH g x1 base=0 {\"a\":2}").hasPrefix("OK outcome=lost"))
        // In order, though some are looked up and some are not.
        try client.send(
            (1...40).map { $0 % 4 == 0 ? "DELETE g z\($0)\n" : "PUSH g \($0 % 4 == 1 ? "x3" : "y") {\"n\":\($0)}\n" }
                .joined().utf8)
        var last = stored + 3
        for number in 1...40 {
            let answer = try client.reply().last ?? ""
            if number % 4 == 1 || number % 4 == 0 {
                last += 1
                #expect(fields(answer)["revision"] == String(last), "\(number): \(answer)")
            } else {
                #expect(answer.hasPrefix("ERR quota-exceeded"), "\(number): \(answer)")
            }
        }
    }

    @Test("coming again does not make room", arguments: ["games", "bytes"])
    func comingAgain(what: String) throws {
        let options = what == "games" ? ["--max-games-per-player", "64"] : ["--max-bytes-per-player", "64000"]
        // Without rates nothing but what is stored is kept in mind.
        let house = try House(
            options + [
                "--pushes-per-player", "off", "--bytes-per-player", "off", "--login-timeout", "0.1",
            ])
        var (client, token) = (try RawClient(port: house.daemon.port), "")
        try eventually(60, "there is a player") {
            try? client.send("REGISTER")
            token = fields(try client.line() ?? "")["token"] ?? ""
            if token.isEmpty { client = try RawClient(port: house.daemon.port) }
            return !token.isEmpty
        }
        var stored = 0
        var answer = ""
        // Two a time: less than what the daemon lets come before it asks.
        while stored < 200 {
            for _ in 1...2 {
                answer = try client.ask("PUSH g x\(stored) base=0 {\"x\":\"\(String(repeating: "x", count: 480))\"}")
                if answer.hasPrefix("OK ") { stored += 1 }
            }
            guard answer.hasPrefix("OK ") else { break }
            client.finishSending()
            while try client.line() != nil {}
            // Who is told this was seen by the look that forgets those who are gone.
            let stranger = try RawClient(port: house.daemon.port)
            #expect(try stranger.line()?.hasPrefix("* BYE reason=login-timeout") == true)
            // On a machine that stands still for a moment the time for signing in may be over.
            try eventually(60, "it is signed in again") {
                client = try RawClient(port: house.daemon.port)
                try? client.send("LOGIN \(token)")
                return try client.line()?.hasPrefix("OK ") == true
            }
        }
        #expect(answer.hasPrefix("ERR quota-exceeded"), "\(stored): \(answer)")
        #expect(stored >= 60 && stored <= 72)
    }

    @Test("more bytes than there may be are refused; deletions go on until they are an eighth")
    func storedBytes() throws {
        let house = try House(["--max-bytes-per-player", "100000"])
        let client = try newPlayer(house.daemon).client
        let state = "\"" + String(repeating: "x", count: 5_000) + "\""
        var revision = 0
        try eventually(60, "the quota is reached") {
            let answer = try client.ask("PUSH g one base=\(revision) \(state)")
            if answer.hasPrefix("OK ") { revision += 1 }
            return answer.hasPrefix("ERR quota-exceeded limit=100000")
        }
        // How far beyond the limit the count came is a question of the machine's pace.
        #expect(revision >= 18 && revision <= 28)
        let answer = try client.ask("DELETE g one base=\(revision)")
        #expect(answer.hasPrefix("OK outcome=advanced"), "\(answer)")
        // Deletions of games that never were, too, take room.
        var deleted = 0
        try eventually(60, "the reserve is used up") {
            let answer = try client.ask("DELETE g x\(deleted)")
            if answer.hasPrefix("OK ") { deleted += 1 }
            return answer.hasPrefix("ERR quota-exceeded limit=100000")
        }
        #expect(deleted >= 23 && deleted <= 200)
    }

    @Test("many small versions are bounded as few large ones are")
    func smallVersions() throws {
        let house = try House(["--max-bytes-per-player", "100000"])
        let client = try newPlayer(house.daemon).client
        var revision = 0
        try eventually(60, "the quota is reached") {
            let answer = try client.ask("PUSH g one base=\(revision) 1")
            if answer.hasPrefix("OK ") { revision += 1 }
            return answer.hasPrefix("ERR quota-exceeded limit=100000")
        }
        #expect(revision >= 190 && revision <= 300)
    }

    /// Pushes games x1, x2 … until there are as many as there may be; gives how many that was.
    private func fill(_ client: RawClient, to limit: Int) throws -> Int {
        var stored = 0
        try eventually(60, "the quota is reached") {
            let answer = try client.ask("PUSH g x\(stored + 1) base=0 saved=2025-06-01T12:00:00Z {}")
            if answer.hasPrefix("OK ") { stored += 1 }
            return answer.hasPrefix("ERR quota-exceeded limit=\(limit)")
        }
        #expect(stored >= limit && stored <= limit + limit / 2)
        return stored
    }
}
