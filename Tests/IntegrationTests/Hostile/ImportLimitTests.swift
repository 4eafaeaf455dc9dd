import Foundation
import Testing

/// An import is no way around what one player may have.
@Suite("what one player may import")
struct ImportLimitTests {
    private static let device = "7d5c3f0e-3c8e-4c7e-9d0b-2f6a1f0e5b11"
    private static let time = "2025-06-01T12:00:00Z"

    /// A new player who has begun an import.
    private func begun(_ daemon: DaemonProcess) throws -> RawClient {
        let client = try newPlayer(daemon).client
        try begin(client)
        return client
    }

    private func begin(_ client: RawClient) throws {
        #expect(try client.ask("IMPORT BEGIN").hasPrefix("OK import="))
        #expect(try client.ask("IMPORT DEVICE \(Self.device) created=\(Self.time) name=phone") == "OK")
    }

    private func version(_ revision: Int, game: String, state: String) -> String {
        "IMPORT VERSION g \(game) revision=\(revision) outcome=created saved=\(Self.time) stamp=\(Self.time) "
            + "received=\(Self.time) device=\(Self.device) base=0 \(state)"
    }

    @Test("more games than there may be are refused at the end; as many are taken, and deleted ones do not count")
    func games() throws {
        let house = try House(["--max-games-per-player", "3"])
        let client = try begun(house.daemon)
        for number in 1...4 { #expect(try client.ask(version(number, game: "x\(number)", state: "{}")) == "OK") }
        #expect(try client.ask("IMPORT END versions=4 devices=1 last=4").hasPrefix("ERR quota-exceeded limit=3"))
        try begin(client)
        for number in 1...4 { #expect(try client.ask(version(number, game: "x\(number)", state: "{}")) == "OK") }
        let deletion =
            "IMPORT VERSION g x1 revision=5 outcome=advanced saved=2025-06-02T12:00:00Z "
            + "stamp=2025-06-02T12:00:00Z received=2025-06-02T12:00:00Z device=\(Self.device) base=1"
        #expect(try client.ask(deletion) == "OK")
        #expect(try client.ask("IMPORT END versions=5 devices=1 last=5") == "OK revision=5")
        // A push knows how many came.
        var number = 0
        try eventually(60, "the quota is reached") {
            number += 1
            return try client.ask("PUSH g other\(number) base=0 {}").hasPrefix("ERR quota-exceeded limit=3")
        }
    }

    @Test("more bytes than there may be are refused, also where they are staged and never ended")
    func storedBytes() throws {
        let house = try House(["--max-bytes-per-player", "100000"])
        let client = try begun(house.daemon)
        let state = "\"" + String(repeating: "x", count: 40_000) + "\""
        #expect(try client.ask(version(1, game: "x1", state: state)) == "OK")
        #expect(try client.ask(version(2, game: "x2", state: state)) == "OK")
        for number in 3...5 {
            #expect(
                try client.ask(version(number, game: "x\(number)", state: state)).hasPrefix(
                    "ERR quota-exceeded limit=100000"))
        }
        #expect(try client.ask("IMPORT END versions=2 devices=1 last=2").hasPrefix("ERR quota-exceeded"))
        #expect(try client.ask("PUSH g x base=0 {}").hasPrefix("OK outcome=created revision=1 "))
    }

    @Test("deletions and devices take room, too, so that they are not without end")
    func emptyVersions() throws {
        let house = try House(["--max-bytes-per-player", "100000"])
        let client = try begun(house.daemon)
        let devices = (0..<1_000).map { "IMPORT DEVICE \(UUID()) created=\(Self.time) name=d\($0)\n" }.joined()
        try client.send(devices.utf8)
        let answers = try (0..<1_000).map { _ in try client.reply().last ?? "" }
        #expect(answers[0] == "OK")
        #expect(answers[999].hasPrefix("ERR quota-exceeded limit=100000"))
        try begin(client)
        let deletions = (1...1_000).map { version($0, game: "x\($0)", state: "") + "\n" }.joined()
        try client.send(deletions.utf8)
        let more = try (0..<1_000).map { _ in try client.reply().last ?? "" }
        #expect(more[0] == "OK")
        #expect(more[999].hasPrefix("ERR quota-exceeded limit=100000"))
    }

    @Test(
        "bytes beyond the rate wait, however often it is begun anew; none is refused, and others do not wait",
        arguments: ["--bytes-per-player", "--bytes-per-address"])
    func rate(option: String) throws {
        let house = try House(BalancedClient.options + [option, "100000/s:50000"])
        let client = try newPlayer(house.daemon, through: "192.0.2.7").client
        try begin(client)
        let state = "\"" + String(repeating: "x", count: 49_000) + "\""
        let start = ContinuousClock.now
        for _ in 1...3 {
            try client.send((1...2).map { version($0, game: "x\($0)", state: state) + "\n" }.joined().utf8)
            let other = try newPlayer(house.daemon, through: "192.0.2.8").client
            #expect(try other.ask("PUSH g x base=0 {}").hasPrefix("OK outcome=created"))
            for _ in 1...2 { #expect(try client.reply().last == "OK") }
            try begin(client)
        }
        // 300,000 bytes less the 150,000 that come at once and on credit.
        #expect(ContinuousClock.now - start > .seconds(1.5))
        try client.send(
            ((1...2).map { version($0, game: "x\($0)", state: state) + "\n" }.joined()
                + "IMPORT END versions=2 devices=1 last=2\n").utf8)
        for _ in 1...2 { #expect(try client.reply().last == "OK") }
        #expect(try client.reply().last == "OK revision=2")
    }
}
