import Testing

@testable import Wire

@Suite("A session's end")
struct SessionEndTests {
    private let receipt = PushReceipt(outcome: .advanced, revision: 42, stamp: .earliest)
    private let receiptLine = "OK outcome=advanced revision=42 stamp=1970-01-01T00:00:00.000000Z"

    @Test("QUIT is answered behind what came before it, then the connection closes")
    func quit() {
        var harness = SessionHarness.signedIn()
        harness.send("PUSH a b {}")
        let request = harness.request
        _ = harness.actions()
        harness.send("QUIT")
        #expect(harness.actions() == [.pauseReading])
        #expect(harness.lines() == [])
        harness.session.pushFinished(request, .success(receipt), into: &harness.effects)
        #expect(harness.lines() == [receiptLine, "OK"])
        #expect(harness.actions() == [.close])
        #expect(harness.session.state == .closed)
    }

    @Test("a peer that sends no more gets its answers, the held command's too")
    func inputEnds() {
        var harness = SessionHarness.signedIn()
        harness.send("PUSH a b {}")
        let push = harness.request
        harness.send("PULL")
        harness.session.inputEnded(into: &harness.effects)
        harness.session.inputEnded(into: &harness.effects)
        _ = harness.actions()
        harness.session.pushFinished(push, .success(receipt), into: &harness.effects)
        #expect(harness.session.state != .closed)
        let pull = harness.request
        #expect(harness.actions().count == 1)
        harness.session.readFinished(pull, lines: Array("END cursor=1 more=false\n".utf8), into: &harness.effects)
        #expect(harness.lines() == [receiptLine, "END cursor=1 more=false"])
        #expect(harness.actions() == [.close])
    }

    @Test("a silent peer that sends no more is closed at once")
    func idleInputEnds() {
        var harness = SessionHarness()
        harness.session.inputEnded(into: &harness.effects)
        #expect(harness.lines() == [])
        #expect(harness.actions() == [.close])
    }

    @Test("a device that may not stay is told its token if it is new, and nothing of what came behind is begun")
    func turnedAway() throws {
        let token = try #require(
            Token(player: SessionHarness.player, device: SessionHarness.device, secret: [UInt8](1...32)))
        var bytes: [UInt8] = []
        token.print(into: &bytes)
        let text = String(decoding: bytes, as: UTF8.self)
        for (line, isNew) in [("LINK 7K3M-Q9TD", true), ("LOGIN \(text)", false)] {
            var harness = SessionHarness()
            harness.send(line)
            let request = harness.request
            harness.send("PUSH a b {}")
            _ = harness.actions()
            let signIn = SignIn(
                player: SessionHarness.player, device: SessionHarness.device, token: isNew ? token : nil, revision: 41)
            harness.session.turnedAway(
                request, signIn, for: .tooManyConnections(of: "this player"), into: &harness.effects)
            let lines = harness.lines()
            #expect(lines.count == (isNew ? 2 : 1))
            #expect(lines[0].contains("token=\(text)") == isNew)
            #expect(lines.last?.hasPrefix("* BYE reason=too-many-connections ") == true)
            #expect(harness.actions() == [.close])
            #expect(harness.session.state == .closed)
        }
    }

    @Test("a draining server answers what was started, refuses what was not, says why, and closes")
    func drains() {
        var harness = SessionHarness.signedIn()
        harness.send("PUSH a b {}")
        let push = harness.request
        harness.send("PULL")
        harness.session.drain(.shuttingDown(), into: &harness.effects)
        #expect(harness.lines() == [])
        _ = harness.actions()
        harness.session.pushFinished(push, .success(receipt), into: &harness.effects)
        let lines = harness.lines()
        #expect(lines.count == 3)
        #expect(lines[0] == receiptLine)
        #expect(lines[1].hasPrefix("ERR shutting-down retry-after=1 hint="))
        #expect(lines[2].hasPrefix("* BYE reason=shutting-down retry-after=1 hint="))
        #expect(harness.actions() == [.close])
    }

    @Test("an idle session that is drained says goodbye at once")
    func drainsIdle() {
        var harness = SessionHarness.signedIn()
        harness.session.drain(.shuttingDown(), into: &harness.effects)
        #expect(harness.lines().map { $0.prefix(26) } == ["* BYE reason=shutting-down"])
        #expect(harness.actions() == [.close])
    }

    @Test("a drain behind a peer that has ended still says why")
    func drainsEnded() {
        var harness = SessionHarness.signedIn()
        harness.send("PUSH a b {}")
        harness.session.inputEnded(into: &harness.effects)
        harness.session.drain(.epochChanged, into: &harness.effects)
        harness.session.pushFinished(harness.request, .failure(.unavailable()), into: &harness.effects)
        let lines = harness.lines()
        #expect(
            lines.count == 2 && lines[0].hasPrefix("ERR unavailable")
                && lines[1].hasPrefix("* BYE reason=epoch-changed"))
    }

    @Test("a held command starts only when the peer reads again")
    func blockedOutputHolds() {
        var harness = SessionHarness.signedIn()
        harness.send("PUSH a b {}")
        let push = harness.request
        harness.send("PULL")
        _ = harness.actions()
        harness.session.outputBlocked(into: &harness.effects)
        harness.session.pushFinished(push, .success(receipt), into: &harness.effects)
        #expect(harness.actions() == [])
        harness.session.outputDrained(into: &harness.effects)
        #expect(harness.actions().count == 2)
    }

    @Test("a line handed over while reading is paused ends the connection, and nothing else")
    func lineWhilePaused() {
        var harness = SessionHarness.signedIn()
        harness.send("PULL")
        harness.send("PULL")
        _ = harness.actions()
        harness.send("PING")
        #expect(harness.lines().map { $0.prefix(21) } == ["* BYE reason=internal"])
        #expect(harness.actions() == [.close])
    }

    @Test("a result of another kind is a mistake of the server's, and the command is told so")
    func wrongKindOfResult() {
        var harness = SessionHarness()
        harness.send("REGISTER")
        harness.session.pushFinished(harness.request, .success(receipt), into: &harness.effects)
        #expect(harness.session.state == .awaitingLogin)
        #expect(harness.lines().map { $0.prefix(12) } == ["ERR internal"])
        harness.signIn()
        harness.send("PULL")
        harness.session.watchEstablished(harness.request, revision: 1, into: &harness.effects)
        #expect(harness.lines().map { $0.prefix(12) } == ["ERR internal"])
        harness.send("PUSH a b {}")
        #expect(harness.effects.actions.last?.runsAlone == false)
    }

    @Test("results for unknown requests are ignored")
    func unknownRequests() {
        var harness = SessionHarness.signedIn()
        for raw in [0, 1, 2, 3, 99, UInt64.max] {
            let request = RequestID(rawValue: raw)
            harness.session.pushFinished(request, .success(receipt), into: &harness.effects)
            harness.session.readFinished(request, lines: [65], into: &harness.effects)
            harness.session.requestFailed(request, .noSuchGame, into: &harness.effects)
            harness.session.watchEstablished(request, revision: 1, into: &harness.effects)
        }
        #expect(harness.effects == Session.Effects())
    }

    @Test(
        "a shell that gets its results while it acts reads, or does not, as the session wants it", arguments: [1, 2, 8])
    func resultsWhileActing(most: Int) {
        var random = SeededRandom.fresh()
        var shell = SynchronousShell(most: most)
        for _ in 0..<2_000 {
            let line = ["PUSH a b {}", "PULL", "PING", "WATCH", "UNWATCH"].randomElement(using: &random) ?? "PING"
            if !shell.session.isPaused { shell.deliver(line) }
            #expect(shell.isReading != shell.session.isPaused)
            #expect(!shell.session.isPaused && !shell.session.hasWorkInFlight)
        }
    }
}

/// A shell whose database answers before the call returns.
private struct SynchronousShell {
    var session: Session
    var isReading = true

    init(most: Int) {
        session = SessionHarness.signedIn(limits: Limits(maxPipelinedPushes: most)).session
    }

    mutating func deliver(_ line: String) {
        var effects = Session.Effects()
        session.lineReceived(Array(line.utf8).span, at: .earliest, into: &effects)
        carryOut(effects)
    }

    private mutating func carryOut(_ effects: Session.Effects) {
        for action in effects.actions {
            var next = Session.Effects()
            switch action {
            case .pauseReading: isReading = false
            case .resumeReading: isReading = true
            case .push(_, _, _, let request):
                session.pushFinished(request, .failure(.busy()), into: &next)
            case .watch(_, _, let request): session.watchEstablished(request, revision: 0, into: &next)
            case .read(_, _, let request): session.requestFailed(request, .busy(), into: &next)
            default: break
            }
            carryOut(next)
        }
    }
}
