import Foundation
import Testing

/// What was overheard or belongs to somebody else opens nothing.
@Suite("words of others")
struct StolenWordsTests {
    @Test("a token that was replaced, revoked, or put together of two is refused, however often it is played again")
    func replayedTokens() throws {
        let house = try House()
        let daemon = house.daemon
        let (alice, old) = try newPlayer(daemon)
        let (_, bob) = try newPlayer(daemon)
        func answer(_ token: some StringProtocol) throws -> String {
            try RawClient(port: daemon.port).ask("LOGIN \(token)")
        }
        #expect(try answer(old).hasPrefix("OK player="), "as long as it holds, it may be used again")

        // Player, device and secret stand between dots.
        let (mine, theirs) = (old.split(separator: "."), bob.split(separator: "."))
        for mixed in [
            [mine[0], mine[1], theirs[2]], [mine[0], theirs[1], mine[2]], [theirs[0], mine[1], mine[2]],
            [mine[0], theirs[1], theirs[2]], [theirs[0], theirs[1], mine[2]],
        ] {
            #expect(try answer(mixed.joined(separator: ".")).hasPrefix("ERR login-failed"))
        }

        let next = try #require(fields(try alice.ask("ROTATE"))["token"])
        let renewed = try RawClient(port: daemon.port)
        #expect(try renewed.ask("LOGIN \(next)").hasPrefix("OK player="))
        for _ in 0..<3 { #expect(try answer(old).hasPrefix("ERR login-failed")) }

        let device = try #require(fields(try RawClient(port: daemon.port).ask("LOGIN \(next)"))["device"])
        #expect(try renewed.ask("REVOKE \(device)").hasPrefix("OK"))
        for _ in 0..<3 { #expect(try answer(next).hasPrefix("ERR device-revoked")) }
        #expect(try answer(bob).hasPrefix("OK player="))
    }

    @Test("another player's cursor and revisions name nothing of theirs: they are one's own, ahead, or not there")
    func cursors() throws {
        let house = try House()
        let (alice, _) = try newPlayer(house.daemon)
        let (bob, _) = try newPlayer(house.daemon)
        for number in 1...9 { #expect(try alice.ask("PUSH g a\(number) base=0 {\"hers\":1}").hasPrefix("OK ")) }
        for number in 1...3 { #expect(try bob.ask("PUSH g b\(number) base=0 {\"his\":1}").hasPrefix("OK ")) }
        #expect(try bob.ask("PULL since=9").hasPrefix("ERR cursor-ahead revision=3"))
        #expect(try bob.ask("WATCH since=9").hasPrefix("ERR cursor-ahead revision=3"))
        for command in ["PULL since=0", "PULL since=2", "HISTORY g b1 before=9", "VERSIONS", "GET g b3 revision=3"] {
            try bob.send(command)
            let lines = try bob.reply()
            #expect(lines.last?.hasPrefix("END") == true, "\(command): \(lines)")
            #expect(!lines.contains { $0.contains("hers") || $0.contains(" a") }, "\(command): \(lines)")
        }
        #expect(try bob.ask("GET g a1").hasPrefix("ERR no-such-game"))
        #expect(try bob.ask("GET g b1 revision=9").hasPrefix("ERR "))
        // A base that is another's revision is none of one's own.
        #expect(try bob.ask("PUSH g b1 base=9 {\"his\":2}").hasPrefix("OK "))
        #expect(try alice.ask("PULL since=9") == "END cursor=9 more=false")
    }
}
