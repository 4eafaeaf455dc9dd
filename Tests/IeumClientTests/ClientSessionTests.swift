import Foundation
import Testing
import Wire

@testable import IeumClient

@Suite("The client's side of a connection")
struct ClientSessionTests {
    private let start = ContinuousClock.now
    private let key: GameKey

    init() throws {
        key = try GameKey(collection: "handle.game", id: "today")
    }

    private func greeted() -> ClientSession {
        var session = ClientSession(patience: .seconds(5), at: start)
        _ = feed(Said.greeting(), to: &session)
        return session
    }

    /// Feeds lines with their line feeds.
    private func feed(_ bytes: [UInt8], to session: inout ClientSession) -> [ClientSession.Event] {
        bytes.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast().compactMap { line in
            Array(line).withUnsafeBufferPointer { session.lineReceived($0.span, at: start) }
        }
    }

    private func feed(_ text: String, to session: inout ClientSession) -> [ClientSession.Event] {
        feed(Array(text.utf8), to: &session)
    }

    private func send(_ command: Command, on session: inout ClientSession) -> Int {
        var bytes: [UInt8] = []
        return session.send(command, patience: .seconds(10), at: start, into: &bytes)
    }

    private func isViolation(_ error: ClientError?) -> Bool {
        if case .protocolViolation? = error { return true }
        return false
    }

    @Test("answers come to the commands in their order, notices between their lines to nobody")
    func order() throws {
        var session = greeted()
        let pull = send(.pull(since: 0, limit: 10), on: &session)
        let ping = send(.ping, on: &session)
        let get = send(.get(key, revision: nil), on: &session)
        var events = feed(Said.game(key, 1, "{}"), to: &session)
        events += feed("* CHANGED revision=9\n* SOMETHING new=1\n\nEND cursor=1 more=false\nOK\n", to: &session)
        events += feed("ERR no-such-game \"there is none\"\n", to: &session)
        try #require(events.count == 4)
        #expect(events[0] == .changed(9))
        guard case .answered(pull, let lines) = events[1], case .answered(ping, let pong) = events[2],
            case .refused(get, let error) = events[3]
        else {
            Issue.record("other events: \(events)")
            return
        }
        #expect(lines.count == 2)
        #expect(pong.count == 1)
        #expect(error.code == .noSuchGame)
        #expect(session.failure == nil)
        #expect(session.deadline == nil)
    }

    @Test(
        "a first line that is no greeting of this protocol ends it",
        arguments: [
            "", "OK", "HTTP/1.1 400 Bad Request", "SSH-2.0-OpenSSH_9.2", "IEUM", "IEUM x", "IEUM 1",
            "* CHANGED revision=1",
            "IEUM 1 server=0.1.0 epoch=no max-line=1 max-state=1 time=now",
            "IEUM 1 server=0.1.0 epoch=6c1e0000-0000-4000-8000-000000000001 max-line=10 max-state=10 "
                + "time=2026-11-29T12:00:00.000000Z",
            "IEUM 99999999999999999999 server=0.1.0", "GAME a b", "END", "\u{FEFF}IEUM 1", "\u{1B}[2J",
        ])
    func badGreeting(line: String) {
        var session = ClientSession(patience: .seconds(5), at: start)
        #expect(feed(line + "\n", to: &session) == [])
        #expect(isViolation(session.failure), "\(String(describing: session.failure))")
    }

    @Test("a newer protocol is told by both versions")
    func newerProtocol() {
        var session = ClientSession(patience: .seconds(5), at: start)
        _ = feed(Said.greeting(version: 2), to: &session)
        #expect(session.failure == .protocolViolation("it speaks version 2, this program version 1"))
    }

    @Test("a server that has no room says so instead of a greeting")
    func noRoom() {
        var session = ClientSession(patience: .seconds(5), at: start)
        _ = feed("ERR too-many-connections retry-after=5 \"full\"\n", to: &session)
        #expect(session.failure == .server(WireError(.tooManyConnections, "full", retryAfter: .seconds(5))))
        var other = ClientSession(patience: .seconds(5), at: start)
        _ = feed("* BYE reason=too-many-connections retry-after=5 \"full\"\n", to: &other)
        other.ended(.closed)
        #expect(
            other.failure == .connectionClosed(WireError(.tooManyConnections, "full", retryAfter: .seconds(5))))
    }

    @Test(
        "a line that is no answer to its command ends it",
        arguments: [
            (Command.ping, "END"), (.ping, "GAME a b"), (.ping, "# help"), (.pull(since: 0, limit: 1), "OK"),
            (.pull(since: 0, limit: 1), "VERSION a b"), (.ping, "IEUM 1"), (.ping, "ERR"), (.ping, "OK \u{7}"),
            (.pull(since: 0, limit: 1), "GAME a b revision=x"), (.pull(since: 0, limit: 1), "END cursor=-1 more=maybe"),
        ])
    func wrongAnswer(command: Command, line: String) {
        var session = greeted()
        _ = send(command, on: &session)
        #expect(feed(line + "\n", to: &session) == [])
        #expect(isViolation(session.failure), "\(String(describing: session.failure))")
        #expect(feed("OK\n", to: &session) == [])
    }

    @Test("an answer that nobody asked for ends it")
    func unasked() {
        var session = greeted()
        #expect(feed("OK\n", to: &session) == [])
        #expect(isViolation(session.failure))
    }

    @Test("an answer with more lines than were asked for ends it")
    func tooManyLines() {
        var session = greeted()
        _ = send(.pull(since: 0, limit: 2), on: &session)
        _ = feed(Said.game(key, 1, "{}"), to: &session)
        _ = feed(Said.game(key, 2, "{}"), to: &session)
        #expect(session.failure == nil)
        _ = feed(Said.game(key, 3, "{}"), to: &session)
        #expect(isViolation(session.failure))
    }

    @Test("silence is too long after the patience of the command that is due, and each line of an answer renews it")
    func patience() {
        var session = ClientSession(patience: .seconds(5), at: start)
        #expect(session.deadline == start + .seconds(5))
        session.timePassed(to: start + .milliseconds(4_999))
        #expect(session.failure == nil)
        _ = feed(Said.greeting(), to: &session)
        #expect(session.deadline == nil)
        var bytes: [UInt8] = []
        _ = session.send(.pull(since: 0, limit: nil), patience: .seconds(10), at: start, into: &bytes)
        let later = start + .seconds(8)
        _ = Said.game(key, 1, "{}").dropLast().withUnsafeBufferPointer { session.lineReceived($0.span, at: later) }
        #expect(session.deadline == later + .seconds(10))
        // What is passed over renews nothing.
        _ = Array("* NEW".utf8).withUnsafeBufferPointer { session.lineReceived($0.span, at: later + .seconds(1)) }
        #expect(session.deadline == later + .seconds(10))
        session.timePassed(to: later + .seconds(10))
        #expect(session.failure == .timedOut(after: .seconds(10)))
    }

    @Test("while bytes move, a thousand a second, nothing is overdue; fewer are silence, and a ping has no excuse")
    func movingBytes() {
        var session = greeted()
        _ = send(.pull(since: 0, limit: 2), on: &session)
        guard let due = session.deadline else { return #expect(Bool(false), "nothing is awaited") }
        let patience = due - start
        let enough = Int(patience / .milliseconds(1))
        session.timePassed(to: due, movedBytes: enough)
        #expect(session.failure == nil)
        #expect(session.deadline == due + patience)
        session.timePassed(to: due + patience, movedBytes: 2 * enough - 1)
        #expect(session.failure == .timedOut(after: patience))

        var other = greeted()
        _ = send(.ping, on: &other)
        other.timePassed(to: due, movedBytes: 100 * enough)
        #expect(other.failure == .timedOut(after: patience))
    }

    @Test("the first failure stays")
    func firstFailure() {
        var session = greeted()
        session.lineTooLong()
        let first = session.failure
        session.ended(.closed)
        session.timePassed(to: start + .seconds(100))
        #expect(session.failure == first)
    }

    @Test("no bytes trap, wherever they come", arguments: [UInt64(1), 2, 3, 4])
    func garbage(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let corpus = [
            Said.greeting(), Said.signIn(), Said.receipt(.lost, 7, rival: 3), Said.game(key, 5, "{\"a\":1}"),
            Array("END cursor=5 more=false\nERR busy retry-after=1 \"x\"\n* CHANGED revision=5\nOK\n".utf8),
        ]
        for _ in 0..<4_000 {
            var session = Bool.random(using: &random) ? greeted() : ClientSession(patience: .seconds(5), at: start)
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let commands: [Command] = [.ping, .pull(since: 0, limit: 2), .get(key, revision: 1), .pair, .time]
                _ = send(commands.randomElement(using: &random) ?? .ping, on: &session)
            }
            var bytes = (0..<3).flatMap { _ in corpus.randomElement(using: &random) ?? [] }
            for _ in 0..<Int.random(in: 0...6, using: &random) where !bytes.isEmpty {
                let index = Int.random(in: bytes.indices, using: &random)
                switch Int.random(in: 0...2, using: &random) {
                case 0: bytes[index] = UInt8.random(in: .min ... .max, using: &random)
                case 1: bytes.remove(at: index)
                default: bytes.insert(UInt8.random(in: .min ... .max, using: &random), at: index)
                }
            }
            _ = feed(bytes, to: &session)
            session.ended(.closed)
            #expect(session.failure != nil, "seed \(seed)")
        }
    }
}

/// A seeded source of random numbers (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
