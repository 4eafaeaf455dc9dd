import Foundation
import Testing

@testable import Wire

@Suite("A session")
struct SessionTests {
    private let receipt = PushReceipt(outcome: .advanced, revision: 42, stamp: .earliest)
    private let receiptLine = "OK outcome=advanced revision=42 stamp=1970-01-01T00:00:00.000000Z"

    @Test("is small, and an idle one owns nothing")
    func isSmall() {
        #expect(MemoryLayout<Session>.size <= 128)
        var harness = SessionHarness.signedIn()
        harness.send("PUSH a b {}")
        harness.session.pushFinished(harness.request, .success(receipt), into: &harness.effects)
        harness.send("WATCH")
        harness.session.watchEstablished(harness.request, revision: 42, into: &harness.effects)
        #expect(harness.session.replies.ownsMemory == false)
        #expect(!harness.session.hasWorkInFlight)
    }

    @Test("greets with all that a client needs to know")
    func greets() throws {
        var harness = SessionHarness()
        let now = try #require(Timestamp("2026-11-29T12:00:00Z"))
        harness.session.connectionOpened(at: now, into: &harness.effects)
        let rest =
            "server=0.1.0 epoch=00000000-0000-0000-0000-000000000000 max-line=1048576 max-state=1047552 "
            + "time=2026-11-29T12:00:00.000000Z"
        #expect(harness.lines() == ["IEUM 1 \(rest)"])
        harness.send("HELLO client=x", at: now)
        harness.send("TIME", at: now)
        harness.send("PING")
        #expect(harness.lines() == ["OK protocol=1 \(rest)", "OK time=2026-11-29T12:00:00.000000Z", "OK"])
        #expect(harness.actions() == [])
    }

    // MARK: Every command in every state

    private static let lines: [(verb: Verb, line: String)] = [
        (.hello, "HELLO"), (.register, "REGISTER device=x"), (.login, "LOGIN \(token)"), (.pair, "PAIR"),
        (.link, "LINK 7K3M-Q9TD"), (.push, "PUSH a b {}"), (.delete, "DELETE a b"), (.pull, "PULL since=3"),
        (.watch, "WATCH since=3"), (.unwatch, "UNWATCH"), (.get, "GET a b"), (.history, "HISTORY a b"), (.time, "TIME"),
        (.versions, "VERSIONS since=3 conflicts=true"), (.devices, "DEVICES limit=7"),
        (.rename, "RENAME name=x"), (.revoke, "REVOKE \(SessionHarness.player)"), (.rotate, "ROTATE"),
        (.importing, "IMPORT BEGIN"),
        (.ping, "PING"), (.help, "HELP"), (.quit, "QUIT"),
    ]
    private static let token =
        "AAAAAAAAAAAAAAAAAAAAAA.AQAAAAAAAAAAAAAAAAAAAA.AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    private static let open: Set<Verb> = [.hello, .time, .ping, .help, .quit]
    private static let signingIn: Set<Verb> = [.register, .login, .link]

    @Test("before login only what needs no device is done; the rest is refused with a hint", arguments: lines)
    func beforeLogin(verb: Verb, line: String) throws {
        var harness = SessionHarness()
        harness.send(line)
        let lines = harness.lines()
        if Self.signingIn.contains(verb) {
            #expect(lines == [])
            #expect(harness.session.state == .signingIn)
            #expect(harness.actions().count == 1)
        } else if Self.open.contains(verb) {
            #expect(lines.last.map { $0.hasPrefix("OK") || $0 == "END" } == true)
            #expect(harness.session.state == (verb == .quit ? .closed : .awaitingLogin))
        } else {
            #expect(lines.count == 1)
            #expect(lines[0].hasPrefix("ERR not-signed-in hint=\""))
            #expect(harness.session.state == .awaitingLogin)
            #expect(harness.actions() == [])
        }
    }

    @Test("while signing in, what needs the answer is held; nothing reaches the database", arguments: lines)
    func whileSigningIn(verb: Verb, line: String) throws {
        var harness = SessionHarness()
        harness.send("LOGIN \(Self.token)")
        let request = harness.request
        _ = harness.actions()
        harness.send(line)
        let isHeld = !Self.open.contains(verb)
        #expect(harness.lines() == [])
        #expect(harness.session.isPaused == (isHeld || verb == .quit))
        #expect(harness.actions().compactMap(\.request) == [])
        // When the login fails, the held command is judged anew.
        harness.session.requestFailed(request, .loginFailed, into: &harness.effects)
        let lines = harness.lines()
        #expect(lines[0].hasPrefix("ERR login-failed"))
        if Self.signingIn.contains(verb) {
            #expect(lines.count == 1 && harness.session.state == .signingIn)
        } else if isHeld {
            #expect(lines.count == 2 && lines[1].hasPrefix("ERR not-signed-in"))
        } else {
            #expect(lines.count >= 2)
        }
    }

    @Test("signed in, each command does its own", arguments: lines)
    func signedIn(verb: Verb, line: String) throws {
        var harness = SessionHarness.signedIn()
        let (player, device) = (SessionHarness.player, SessionHarness.device)
        let request = RequestID(rawValue: 2)
        let game = try GameKey(collection: "a", id: "b")
        harness.send(line)
        let expected: [Session.Action] =
            switch verb {
            case .push: [.push(Push(game: game, state: Array("{}".utf8)), player: player, device: device, request)]
            case .delete: [.push(Push(game: game, state: nil), player: player, device: device, request)]
            case .pair: [.createPairingCode(player: player, device: device, request)]
            case .pull: [.read(.pull(since: 3, limit: 100), player: player, request)]
            case .get: [.read(.get(game, revision: nil), player: player, request)]
            case .history: [.read(.history(game, before: nil, limit: 100), player: player, request)]
            case .versions:
                [.read(.versions(VersionsQuery(.since(3), onlyConflicts: true), limit: 100), player: player, request)]
            case .devices: [.read(.devices(after: nil, limit: 7), player: player, request)]
            case .rename: [.changeAccount(.rename(device, name: "x"), player: player, device: device, request)]
            case .revoke:
                [.changeAccount(.revoke(DeviceID(player.uuid)), player: player, device: device, request)]
            case .rotate: [.changeAccount(.rotate, player: player, device: device, request)]
            case .importing: [.importing(.begin, player: player, device: device, request)]
            case .watch: [.watch(since: 3, player: player, request)]
            case .quit: [.close]
            case .hello, .register, .login, .link, .unwatch, .time, .ping, .help: []
            }
        #expect(harness.actions() == expected)
        let lines = harness.lines()
        if Self.signingIn.contains(verb) {
            #expect(lines.count == 1 && lines[0].hasPrefix("ERR already-signed-in hint="))
        } else if Self.open.contains(verb) || verb == .unwatch {
            #expect(lines.last.map { $0.hasPrefix("OK") || $0 == "END" } == true)
        } else {
            #expect(lines == [])
        }
    }

    @Test("closed, no command and no event leads to anything", arguments: lines)
    func closed(verb: Verb, line: String) throws {
        var harness = SessionHarness.signedIn()
        harness.send("PUSH a b {}")
        let request = harness.request
        harness.session.revoked(into: &harness.effects)
        let lines = harness.lines()
        #expect(lines.count == 1 && lines[0].hasPrefix("* BYE reason=device-revoked hint="))
        #expect(harness.actions().last == .close)
        #expect(harness.session.state == .closed)
        harness.send(line)
        harness.session.lineTooLong(into: &harness.effects)
        harness.session.pushFinished(request, .success(receipt), into: &harness.effects)
        harness.session.changed(upTo: 99, into: &harness.effects)
        harness.session.outputBlocked(into: &harness.effects)
        harness.session.outputDrained(into: &harness.effects)
        harness.session.inputEnded(into: &harness.effects)
        harness.session.drain(.shuttingDown(), into: &harness.effects)
        harness.session.revoked(into: &harness.effects)
        harness.session.connectionOpened(at: .earliest, into: &harness.effects)
        harness.session.connectionLost()
        #expect(harness.effects == Session.Effects())
    }

    @Test("each way to sign in asks for its own, and a new device gets its token")
    func signsIn() throws {
        let token = try #require(Token(Self.token))
        let code = try #require(PairingCode("7K3M-Q9TD"))
        let request = RequestID(rawValue: 1)
        for (line, action) in [
            ("LOGIN \(Self.token)", Session.Action.signIn(token, request)),
            ("REGISTER device=\"my iPad\"", .register(device: "my iPad", request)),
            ("REGISTER", .register(device: nil, request)),
            (
                "REGISTER invite=7k3mq9td0v5rzx2c",
                .register(device: nil, invite: InviteCode("7K3M-Q9TD-0V5R-ZX2C"), request)
            ),
            ("LINK 7K3M-Q9TD device=x", .redeem(code, device: "x", request)),
        ] {
            var harness = SessionHarness()
            harness.send(line)
            #expect(harness.actions() == [action])
            let isNew = !line.hasPrefix("LOGIN")
            let signIn = SignIn(
                player: token.player, device: token.device, token: isNew ? token : nil, revision: 41)
            harness.session.signedIn(request, as: signIn, into: &harness.effects)
            let middle = isNew ? " token=\(Self.token)" : ""
            #expect(harness.lines() == ["OK player=\(token.player) device=\(token.device)\(middle) revision=41"])
            #expect(harness.session.state == .ready(player: token.player, device: token.device))
        }
    }

    // MARK: Answers

    @Test("answers say what there is to say")
    func answers() throws {
        var harness = SessionHarness.signedIn()
        let offer = PairingOffer(code: try #require(PairingCode("7K3MQ9TD")), expires: .earliest)
        harness.send("PAIR")
        harness.session.pairingCodeCreated(harness.request, offer, into: &harness.effects)
        harness.send("PULL since=3 limit=5000")
        #expect(
            harness.effects.actions.last
                == .read(.pull(since: 3, limit: 1_000), player: SessionHarness.player, harness.request))
        harness.session.readFinished(
            harness.request, lines: Array("END cursor=3 more=false\n".utf8), into: &harness.effects)
        harness.send("PUSH a b {}")
        harness.session.pushFinished(harness.request, .failure(.savedReused(revision: 7)), into: &harness.effects)
        harness.send("GET a b")
        harness.session.requestFailed(harness.request, .noSuchGame, into: &harness.effects)
        let lines = harness.lines()
        #expect(lines[0] == "OK code=7K3M-Q9TD expires=1970-01-01T00:00:00.000000Z")
        #expect(lines[1] == "END cursor=3 more=false")
        #expect(lines[2].hasPrefix("ERR saved-reused revision=7 hint="))
        #expect(lines[3].hasPrefix("ERR no-such-game hint="))
    }

    @Test("a lost push brings the head along, a tombstone too")
    func lostPush() throws {
        var harness = SessionHarness.signedIn()
        var head = PushReceipt.Head(
            revision: 41, saved: .earliest, stamp: .earliest, device: SessionHarness.device, schema: 1,
            state: Array("{\"a\":1}".utf8))
        harness.send("PUSH a b {}")
        let lost = PushReceipt(outcome: .lost, revision: 42, stamp: .earliest, rival: 41, head: head)
        harness.session.pushFinished(harness.request, .success(lost), into: &harness.effects)
        head.state = nil
        harness.send("PUSH a b {}")
        let repeated = PushReceipt(
            outcome: .repeated, first: .lost, revision: 42, stamp: .earliest, rival: 41, head: head)
        harness.session.pushFinished(harness.request, .success(repeated), into: &harness.effects)
        let time = "1970-01-01T00:00:00.000000Z"
        let details =
            "revision=42 stamp=\(time) rival=41 head=41 head-saved=\(time) head-stamp=\(time) "
            + "head-device=\(SessionHarness.device) head-schema=1"
        #expect(
            harness.lines() == [
                "OK outcome=lost \(details) {\"a\":1}", "OK outcome=repeated first=lost \(details) head-deleted=true",
            ])
    }

    @Test("a bad line gets its code, and the next command works")
    func badLines() {
        var harness = SessionHarness.signedIn()
        harness.send("PUSH handle.game bad {\"answer\":")
        harness.session.lineTooLong(into: &harness.effects)
        harness.session.lineReceived([0xFF].span, at: .earliest, into: &harness.effects)
        harness.send("")
        harness.send("NONSENSE")
        harness.send("PING")
        let lines = harness.lines()
        let codes = lines.dropLast().map { $0.split(separator: " ")[1] }
        #expect(codes == ["invalid-json", "line-too-long", "invalid-utf8", "unknown-command"])
        #expect(lines.last == "OK")
    }

    // MARK: Order

    @Test("pushes overlap, and are answered in the order in which they came")
    func pushesOverlap() {
        var harness = SessionHarness.signedIn()
        for _ in 0..<3 { harness.send("PUSH a b {}") }
        harness.send("PING")
        harness.send("NONSENSE")
        let requests = harness.actions().compactMap(\.request)
        #expect(requests.count == 3)
        for (index, isLast) in [(2, false), (1, false), (1, false), (0, true), (0, true)] {
            let receipt = PushReceipt(outcome: .advanced, revision: Int64(index), stamp: .earliest)
            harness.session.pushFinished(requests[index], .success(receipt), into: &harness.effects)
            #expect(harness.effects.output.isEmpty != isLast)
        }
        let lines = harness.lines()
        #expect(lines.count == 5)
        for index in 0..<3 { #expect(lines[index].contains("revision=\(index) ")) }
        #expect(lines[3] == "OK")
        #expect(lines[4].hasPrefix("ERR unknown-command"))
    }

    @Test("a pull after pushes waits for them, and reading pauses meanwhile")
    func pullWaits() {
        var harness = SessionHarness.signedIn()
        harness.send("PUSH a b {}")
        let first = harness.request
        harness.send("PUSH a c {}")
        let second = harness.request
        _ = harness.actions()
        harness.send("PULL")
        #expect(harness.actions() == [.pauseReading])
        harness.session.pushFinished(second, .success(receipt), into: &harness.effects)
        #expect(harness.actions() == [])
        harness.session.pushFinished(first, .success(receipt), into: &harness.effects)
        let pull = RequestID(rawValue: 4)
        #expect(
            harness.actions() == [
                .resumeReading, .read(.pull(since: 0, limit: 100), player: SessionHarness.player, pull),
            ])
        harness.send("PING")
        harness.send("PUSH a d {}")
        #expect(harness.actions() == [.pauseReading])
        #expect(harness.lines() == [receiptLine, receiptLine])
        harness.session.readFinished(pull, lines: Array("END cursor=2 more=false\n".utf8), into: &harness.effects)
        #expect(harness.lines() == ["END cursor=2 more=false", "OK"])
        #expect(harness.actions().compactMap(\.request).count == 1)
    }

    @Test("a full pipeline pauses, and goes on when it is half empty")
    func fullPipeline() {
        var harness = SessionHarness.signedIn(limits: Limits(maxPipelinedPushes: 4))
        for _ in 0..<3 { harness.send("PUSH a b {}") }
        #expect(!harness.session.isPaused)
        harness.send("PUSH a b {}")
        #expect(harness.session.isPaused)
        let requests = harness.actions().compactMap(\.request)
        harness.session.pushFinished(requests[0], .success(receipt), into: &harness.effects)
        #expect(harness.session.isPaused)
        harness.session.pushFinished(requests[1], .success(receipt), into: &harness.effects)
        #expect(!harness.session.isPaused)
        #expect(harness.actions() == [.resumeReading])
    }

    @Test("10,000 pipelined commands are answered in order", arguments: [1, 2, 128])
    func manyPipelined(most: Int) throws {
        var harness = SessionHarness.signedIn(limits: Limits(maxPipelinedPushes: most))
        var random = SeededRandom.fresh()
        var waiting: [RequestID: Int] = [:]
        var replies: [String] = []
        var next = 0
        while replies.count < 10_000 {
            if !harness.session.isPaused, next < 10_000 {
                if next % 5 == 4 {
                    harness.send("TIME", at: Timestamp(clamping: Int64(next)))
                } else {
                    harness.send("PUSH a b {}")
                    waiting[harness.request] = next
                }
                next += 1
            } else {
                let (request, index) = try #require(waiting.randomElement(using: &random))
                waiting[request] = nil
                let receipt = PushReceipt(
                    outcome: .advanced, revision: 1, stamp: Timestamp(clamping: Int64(index)))
                harness.session.pushFinished(request, .success(receipt), into: &harness.effects)
            }
            _ = harness.actions()
            replies += harness.lines()
        }
        for (index, reply) in replies.enumerated() {
            guard reply.hasSuffix("=\(Timestamp(clamping: Int64(index)))") else {
                Issue.record("reply \(index): \(reply)")
                return
            }
        }
    }
}

extension ReplyQueue {
    /// Whether the queue holds an array of its own.
    fileprivate var ownsMemory: Bool { Mirror(reflecting: self).descendant("slots").map { "\($0)" } != "[]" }
}
