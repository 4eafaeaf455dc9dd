import EventLoop
import Foundation
import Glibc
import Testing
import Wire

@testable import IeumClient

@Suite("A connection to a server")
struct ServerConnectionTests {
    private let quick = ServerConnection.Patience(connecting: .milliseconds(200), answer: .milliseconds(200))

    private func failure<Value>(_ body: () throws(ClientError) -> Value) -> ClientError? {
        do throws(ClientError) {
            _ = try body()
            return nil
        } catch {
            return error
        }
    }

    @Test("has the server's greeting, and signs in")
    func answers() throws {
        let peer = Peer([.say(Said.greeting()), .hear("LOGIN"), .say(Said.signIn(revision: 41))])
        let connection = try ServerConnection(to: peer.address)
        #expect(connection.greeting.server == "0.1.0")
        #expect(connection.greeting.epoch == Said.epoch)
        #expect(connection.clockOffset < .seconds(60) && connection.clockOffset > .seconds(-60))
        #expect(try connection.logIn(Said.token).revision == 41)
        #expect(peer.heard == [["LOGIN \(Said.token.text)"]])
    }

    @Test("gives pipelined answers whichever is asked for first")
    func pipelined() throws {
        let time = Said.line { $0 += "OK time=2026-11-29T12:00:00.000000Z\n".utf8 }
        let peer = Peer([.say(Said.greeting()), .hear("TIME"), .hear("PING"), .say(time), .say("OK\n")])
        let connection = try ServerConnection(to: peer.address)
        let first = connection.send(.time)
        let second = connection.send(.ping)
        #expect(try connection.answer(to: second).count == 1)
        #expect(try connection.answer(to: first).count == 1)
    }

    @Test("a refusal is an error with the server's code, and the connection goes on")
    func refusal() throws {
        let peer = Peer([
            .say(Said.greeting()), .hear("PAIR"), .say("ERR busy retry-after=1.5 \"no\"\n"), .hear("PING"),
            .say("OK\n"),
        ])
        let connection = try ServerConnection(to: peer.address)
        let error = failure { () throws(ClientError) in try connection.pair() }
        #expect(error == .server(WireError(.busy, "no", retryAfter: .milliseconds(1_500))))
        _ = try connection.ping()
    }

    @Test("nobody there is unreachable")
    func unreachable() throws {
        // Bound, so that nobody else gets the port, and not listening.
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(descriptor, $0, length)
                _ = getsockname(descriptor, $0, &length)
            }
        }
        let server = ServerAddress(host: "127.0.0.1", port: UInt16(bigEndian: address.sin_port))
        let error = failure { () throws(ClientError) in try ServerConnection(to: server) }
        #expect(error == .unreachable("Connection refused"))
        #expect(error?.isRetryable == true)
    }

    @Test("a server that says nothing, or nothing more, or half a line, is given up in time", arguments: 0...3)
    func silence(kind: Int) {
        let scripts: [[Peer.Step]] = [
            [.hear("never")], [.say(Array(Said.greeting().dropLast(5)))],
            [.say(Said.greeting()), .hear("PING")], [.say(Said.greeting()), .hear("PING"), .say("O")],
        ]
        let peer = Peer(scripts[kind])
        let start = ContinuousClock.now
        let error = failure { () throws(ClientError) in
            let connection = try ServerConnection(to: peer.address, patience: quick)
            _ = try connection.ping()
        }
        #expect(error == .timedOut(after: .milliseconds(200)))
        #expect(ContinuousClock.now - start >= .milliseconds(200))
    }

    @Test("what comes too late does not count: every later call throws the same error")
    func overIsOver() throws {
        let peer = Peer([.say(Said.greeting()), .hear("PING"), .hear("TIME"), .say("OK\n")])
        let patience = ServerConnection.Patience(connecting: .seconds(60), answer: quick.answer)
        let connection = try ServerConnection(to: peer.address, patience: patience)
        let first = failure { () throws(ClientError) in try connection.ping() }
        let second = failure { () throws(ClientError) in try connection.pair() }
        #expect(first == .timedOut(after: .milliseconds(200)))
        #expect(second == first)
    }

    @Test("a line without end is given up long before it fills the memory")
    func endlessLine() {
        let peer = Peer([.say([UInt8](repeating: 0x41, count: 4_000_000))])
        let error = failure { () throws(ClientError) in try ServerConnection(to: peer.address) }
        #expect(error == .protocolViolation("a line is too long"))
    }

    @Test("a state as long as the server takes comes through")
    func longLine() throws {
        let key = try GameKey(collection: "c", id: "g")
        let state = "\"" + String(repeating: "x", count: 999_998) + "\""
        let peer = Peer([.say(Said.greeting()), .hear("GET"), .say(Said.game(key, 1, state)), .say("END\n")])
        let connection = try ServerConnection(to: peer.address)
        #expect(try connection.get(key).state == Array(state.utf8))
    }

    @Test("a state that comes slowly comes through, however long it takes")
    func slowLine() throws {
        let key = try GameKey(collection: "c", id: "g")
        let state = "\"" + String(repeating: "x", count: 48_000) + "\""
        let bytes = Said.game(key, 1, state)
        var script: [Peer.Step] = [.say(Said.greeting()), .hear("GET")]
        for start in stride(from: 0, to: bytes.count, by: 2_000) {
            script += [.pause(.milliseconds(200)), .say(Array(bytes[start..<min(start + 2_000, bytes.count)]))]
        }
        let peer = Peer(script + [.say("END\n")])
        let patience = ServerConnection.Patience(connecting: .seconds(60), answer: .seconds(4))
        let start = ContinuousClock.now
        let connection = try ServerConnection(to: peer.address, patience: patience)
        #expect(try connection.get(key).state == Array(state.utf8))
        #expect(ContinuousClock.now - start > patience.answer)
    }

    @Test("the server's farewell is the reason of the end")
    func farewell() {
        let peer = Peer([
            .say(Said.greeting()), .hear("PING"), .say("* BYE reason=shutting-down retry-after=1 \"bye\"\n"), .close,
        ])
        let error = failure { () throws(ClientError) in try ServerConnection(to: peer.address).ping() }
        #expect(error == .connectionClosed(WireError(.shuttingDown, "bye", retryAfter: .seconds(1))))
    }

    @Test("a change is told once, the latest of several, and silence is no change")
    func changes() throws {
        let peer = Peer([
            .say(Said.greeting()), .hear("WATCH"), .say("OK revision=3\n* CHANGED revision=4\n* CHANGED revision=6\n"),
            .hear("PING"), .say("OK\n"),
        ])
        let connection = try ServerConnection(to: peer.address)
        try connection.watch(since: 3)
        _ = try connection.ping()
        #expect(try connection.nextChange(within: .seconds(10)) == 6)
        #expect(try connection.nextChange(within: .milliseconds(20)) == nil)
    }

    @Test(
        "an answer that contradicts the question is a violation",
        arguments: [
            "END cursor=4 more=false", "END cursor=5 more=true", "END cursor=9", "END more=false", "END",
        ])
    func contradictions(end: String) {
        let peer = Peer([.say(Said.greeting()), .hear("PULL"), .say(end + "\n")])
        let error = failure { () throws(ClientError) in try ServerConnection(to: peer.address).pull(since: 5) }
        guard case .protocolViolation? = error else {
            Issue.record("another error: \(String(describing: error))")
            return
        }
    }

    @Test("a push that the server says it does not take is refused in its words, and not sent")
    func tooLarge() throws {
        let peer = Peer([.say(Said.greeting()), .hear("PING"), .say("OK\n")])
        let connection = try ServerConnection(to: peer.address)
        let key = try GameKey(collection: "a", id: "b")
        for (size, code) in [(30_000_000, WireError.Code.lineTooLong), (1_000_001, .stateTooLarge)] {
            let push = Push(
                game: key, saved: .now, base: 0, schema: 0, state: Array(repeating: UInt8(ascii: "1"), count: size))
            let error = failure { () throws(ClientError) in try connection.push(push) }
            guard case .server(let refusal)? = error else {
                Issue.record("another error: \(String(describing: error))")
                return
            }
            #expect(refusal.code == code)
        }
        // The connection is as good as before.
        _ = try connection.ping()
        #expect(peer.heard == [["PING"]])
    }

    @Test("a sign-in as somebody else is a violation")
    func somebodyElse() {
        let peer = Peer([.say(Said.greeting()), .hear("LOGIN"), .say(Said.signIn(Said.newToken()))])
        let error = failure { () throws(ClientError) in try ServerConnection(to: peer.address).logIn(Said.token) }
        #expect(error == .protocolViolation("it signed in somebody else"))
    }
}

@Suite("A server's address")
struct ServerAddressTests {
    @Test(
        "is read in all its forms and printed so that it reads back",
        arguments: [
            ("games.example.org:7878", "games.example.org", 7878), ("localhost", "localhost", 4386),
            ("127.0.0.1:1", "127.0.0.1", 1), ("[::1]:4386", "::1", 4386), ("[fe80::1%eth0]", "fe80::1%eth0", 4386),
            ("::1", "::1", 4386), ("a:65535", "a", 65_535),
        ])
    func reads(text: String, host: String, port: UInt16) {
        let address = ServerAddress(text)
        #expect(address == ServerAddress(host: host, port: port))
        #expect(address.flatMap { ServerAddress($0.description) } == address)
    }

    @Test(
        "says how the server is spoken to: plainly on this machine, else with TLS, unless it says so itself",
        arguments: [
            ("localhost:1", false, "localhost:1"), ("127.0.0.1", false, "127.0.0.1:4386"),
            ("127.9.9.9:1", false, "127.9.9.9:1"), ("[::1]:1", false, "[::1]:1"),
            ("games.example.org", true, "games.example.org:4386"), ("192.0.2.1:1", true, "192.0.2.1:1"),
            ("localhost.example.org", true, "localhost.example.org:4386"),
            ("127.0.0.1.example.org", true, "127.0.0.1.example.org:4386"), ("[::2]", true, "[::2]:4386"),
            ("tls://localhost:1", true, "tls://localhost:1"), ("plain://localhost:1", false, "localhost:1"),
            ("tls://a:1", true, "a:1"), ("plain://a:1", false, "plain://a:1"),
            ("PLAIN://[::2]:1", false, "plain://[::2]:1"),
        ])
    func saysHow(text: String, isSecure: Bool, printed: String) throws {
        let address = try #require(ServerAddress(text))
        #expect(address.isSecure == isSecure)
        #expect(address.description == printed)
        #expect(ServerAddress(printed) == address)
    }

    @Test("pins by 64 hexadecimal digits, with colons and capitals or without")
    func fingerprints() throws {
        let text = String(repeating: "0aF9", count: 16)
        let fingerprint = try #require(ServerTrust.Fingerprint(text))
        #expect(fingerprint.description == text.lowercased())
        let coloned = stride(from: 0, to: 64, by: 2).map { String(Array(text)[$0...($0 + 1)]) }.joined(separator: ":")
        #expect(ServerTrust.Fingerprint(coloned.uppercased()) == fingerprint)
        for bad in [
            "", String(text.dropLast()), text + "0", String(text.dropLast()) + "g", String(text.dropLast()) + "é",
        ] {
            #expect(ServerTrust.Fingerprint(bad) == nil)
        }
    }

    @Test(
        "is nothing else",
        arguments: [
            "tls://", "plain://:1", "tls:a", "tls://plain://a", "http://a", "", ":", ":1", "a:", "a:0", "a:65536",
            "a:+1", "a:1x", "a b:1", "[::1", "[]:1", "[a]:1", "http://a:1",
            "a/b", "é:1",
            "a:99999999999999999999", "[::1]4386", "\u{0}",
        ])
    func refuses(text: String) {
        #expect(ServerAddress(text) == nil)
    }
}

@Suite("Waiting between tries")
struct BackoffTests {
    @Test("grows to its limit, is spread over the whole range, and obeys the server")
    func grows() {
        var random = SplitMix64(seed: 7)
        var backoff = Backoff(first: .seconds(1), limit: .seconds(8))
        var longest: [Duration] = []
        for _ in 0..<6 {
            var bound = Duration.zero
            for _ in 0..<200 {
                var copy = backoff
                bound = max(bound, copy.next(using: &random))
            }
            longest.append(bound)
            _ = backoff.next(using: &random)
        }
        for (bound, limit) in zip(longest, [1, 2, 4, 8, 8, 8]) {
            #expect(bound <= .seconds(limit))
            #expect(bound > .seconds(limit) * 0.9)
        }
        #expect(backoff.next(atLeast: .seconds(30), using: &random) >= .seconds(30))
        backoff.reset()
        #expect(backoff.next(using: &random) <= .seconds(1))
    }
}
