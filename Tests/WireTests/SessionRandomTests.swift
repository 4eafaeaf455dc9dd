import Testing

@testable import Wire

@Suite("A session under any schedule")
struct SessionRandomTests {
    @Test("gives the same replies in the order of the commands, whatever finishes first")
    func anyInterleaving() throws {
        var random = SeededRandom.fresh()
        for _ in 0..<400 {
            let script = try (0..<Int.random(in: 1...60, using: &random)).map { index in
                try Step.random(index, using: &random)
            }
            let most = [1, 2, 5, 128].randomElement(using: &random) ?? 1
            for _ in 0..<2 {
                var driver = Driver(script: script, most: most, random: random)
                try driver.run(ending: nil)
                #expect(driver.replies == script.flatMap(\.reply))
                random = driver.random
            }
        }
    }

    @Test("that is ended at any moment has answered in order, and says nothing afterwards")
    func anyEnd() throws {
        var random = SeededRandom.fresh()
        for _ in 0..<400 {
            let script = try (0..<40).map { index in try Step.random(index, using: &random) }
            let ending = Ending.allCases.randomElement(using: &random) ?? .hangUp
            var driver = Driver(script: script, most: 5, random: random)
            try driver.run(ending: ending)
            random = driver.random
            #expect(driver.harness.session.state == .closed)
            let expected = script.flatMap(\.reply)
            let delivered = script[..<driver.delivered].flatMap(\.reply)
            switch ending {
            case .hangUp, .lost: #expect(driver.replies == Array(expected.prefix(driver.replies.count)))
            case .inputEnded: #expect(driver.replies == delivered)
            case .drain:
                // All that was delivered is answered; only the last, if it was held, by a refusal.
                if driver.replies != delivered {
                    #expect(driver.replies.last?.hasPrefix("ERR shutting-down") == true)
                    let answered = driver.replies.dropLast()
                    #expect(Array(answered) == Array(delivered.prefix(answered.count)))
                    let missing = script[..<(driver.delivered - 1)].flatMap(\.reply)
                    #expect(Array(answered) == missing)
                }
            }
            #expect(driver.byes == (ending == .hangUp || ending == .drain ? 1 : 0))
        }
    }
}

private enum Ending: CaseIterable { case inputEnded, drain, hangUp, lost }

/// One line of a script, what its request will answer, and the reply that must come of it.
private struct Step {
    enum Result {
        case none
        case push(Swift.Result<PushReceipt, WireError>)
        case read([UInt8])
        case watching(Revision)
        case pairing(PairingOffer)
        case importing(Reply)
        case account(Reply)
        case failure(WireError)
    }

    var line: String
    var time = Timestamp.earliest
    var result = Result.none
    var reply: [String]

    static func random(_ index: Int, using random: inout SeededRandom) throws -> Step {
        let mark = Timestamp(clamping: Int64(index))
        let failure = WireError(.unavailable, "step \(index)", retryAfter: .seconds(1))
        let fails = random.chance(0.2)
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<7:
            let receipt = PushReceipt(outcome: .advanced, revision: 1_000_000, stamp: mark)
            return Step(
                line: random.chance(0.8) ? "PUSH a b {}" : "DELETE a b",
                result: .push(fails ? .failure(failure) : .success(receipt)),
                reply: Self.line { if fails { failure.print(into: &$0) } else { receipt.print(into: &$0) } })
        case 7, 8, 9:
            let verb =
                ["PULL", "GET a b", "HISTORY a b", "VERSIONS", "DEVICES"].randomElement(using: &random) ?? "PULL"
            let lines =
                (0..<Int.random(in: 0...3, using: &random)).map { "GAME \(index) \($0)" } + ["END cursor=\(index)"]
            return Step(
                line: verb,
                result: fails ? .failure(failure) : .read(Array((lines.joined(separator: "\n") + "\n").utf8)),
                reply: fails ? Self.line { failure.print(into: &$0) } : lines)
        case 10:
            return Step(
                line: "WATCH since=\(index)", result: fails ? .failure(failure) : .watching(Int64(index)),
                reply: fails ? Self.line { failure.print(into: &$0) } : ["OK revision=\(index)"])
        case 11:
            guard random.chance(0.5) else { return Step(line: "UNWATCH", reply: ["OK"]) }
            let line = ["RENAME name=a", "REVOKE \(SessionHarness.player)"].randomElement(using: &random) ?? ""
            let answer = Self.line { if fails { failure.print(into: &$0) } else { Reply.done.print(into: &$0) } }
            return Step(line: line, result: fails ? .failure(failure) : .account(.done), reply: answer)
        case 12:
            let offer = PairingOffer(code: try random.pairingCode(), expires: mark)
            return Step(
                line: "PAIR", result: fails ? .failure(failure) : .pairing(offer),
                reply: Self.line { if fails { failure.print(into: &$0) } else { offer.print(into: &$0) } })
        case 13: return Step(line: "TIME", time: mark, reply: ["OK time=\(mark)"])
        case 14:
            return Step(
                line: "PUSH a b {",
                reply: Self.line { WireError(JSONCheck.Failure(reason: .endsInObject, offset: 1)).print(into: &$0) })
        case 15, 16, 17:
            let device = "IMPORT DEVICE \(SessionHarness.device) created=\(mark) name=a"
            return Step(
                line: device, result: fails ? .failure(failure) : .importing(.done),
                reply: fails ? Self.line { failure.print(into: &$0) } : ["OK"])
        case 18:
            return Step(
                line: "IMPORT END versions=0 devices=0 last=\(index)",
                result: fails ? .failure(failure) : .importing(.imported(revision: Int64(index))),
                reply: fails ? Self.line { failure.print(into: &$0) } : ["OK revision=\(index)"])
        default:
            return Step(line: "REGISTER", reply: Self.line { WireError.alreadySignedIn.print(into: &$0) })
        }
    }

    private static func line(_ print: (inout [UInt8]) -> Void) -> [String] {
        var bytes: [UInt8] = []
        print(&bytes)
        return [String(decoding: bytes.dropLast(), as: UTF8.self)]
    }

    var needsAnswer: Bool { if case .none = result { false } else { true } }
}

/// Plays a script against a session, every choice at random, and checks after each event what must always hold.
private struct Driver {
    let script: [Step]
    let most: Int
    var random: SeededRandom
    var harness: SessionHarness
    var replies: [String] = []
    var byes = 0
    private(set) var delivered = 0
    private var notStarted: [Int] = []
    private var underWay: [(request: RequestID, step: Int, isAlone: Bool)] = []
    private var finished: [RequestID] = []
    private var isBlocked = false
    private var told: Revision = -1

    init(script: [Step], most: Int, random: SeededRandom) {
        self.script = script
        self.most = most
        self.random = random
        harness = .signedIn(limits: Limits(maxPipelinedPushes: most))
    }

    mutating func run(ending: Ending?) throws {
        let endsAt = ending == nil ? Int.max : Int.random(in: 0..<150, using: &random)
        var events = 0
        while delivered < script.count || harness.session.hasWorkInFlight || isBlocked {
            if events == endsAt { break }
            events += 1
            try #require(events < 100_000, "the session stands still")
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5 where !harness.session.isPaused && delivered < script.count: deliver()
            case 5, 6, 7: if let index = underWay.indices.randomElement(using: &random) { finish(index) }
            case 8:
                let revision = Int64.random(in: 0...100, using: &random)
                harness.session.changed(upTo: revision, into: &harness.effects)
            case 9:
                if isBlocked {
                    harness.session.outputDrained(into: &harness.effects)
                } else {
                    harness.session.outputBlocked(into: &harness.effects)
                }
                isBlocked.toggle()
            default: lateResults()
            }
            try check()
        }
        guard let ending else { return }
        switch ending {
        case .inputEnded: harness.session.inputEnded(into: &harness.effects)
        case .drain: harness.session.drain(.shuttingDown(), into: &harness.effects)
        case .hangUp: harness.session.hangUp(.idleTimeout, into: &harness.effects)
        case .lost: harness.session.connectionLost()
        }
        harness.session.outputDrained(into: &harness.effects)
        isBlocked = false
        try check()
        while harness.session.state != .closed {
            let index = try #require(underWay.indices.randomElement(using: &random))
            finish(index)
            try check()
        }
        for index in underWay.indices.reversed() { finish(index) }
        lateResults()
        #expect(harness.effects == Session.Effects())
    }

    private mutating func deliver() {
        let step = script[delivered]
        if step.needsAnswer { notStarted.append(delivered) }
        delivered += 1
        harness.send(step.line, at: step.time)
    }

    private mutating func finish(_ index: Int) {
        let (request, step, _) = underWay.remove(at: index)
        finished.append(request)
        switch script[step].result {
        case .none: Issue.record("step \(step) has no result")
        case .push(let result): harness.session.pushFinished(request, result, into: &harness.effects)
        case .read(let lines): harness.session.readFinished(request, lines: lines, into: &harness.effects)
        case .watching(let revision):
            harness.session.watchEstablished(request, revision: revision, into: &harness.effects)
        case .pairing(let offer): harness.session.pairingCodeCreated(request, offer, into: &harness.effects)
        case .account(let answer): harness.session.accountChanged(request, answer, into: &harness.effects)
        case .importing(let answer): harness.session.importAnswered(request, answer, into: &harness.effects)
        case .failure(let error): harness.session.requestFailed(request, error, into: &harness.effects)
        }
    }

    /// Results for requests that were answered already.
    private mutating func lateResults() {
        guard let request = finished.randomElement(using: &random) else { return }
        harness.session.pushFinished(request, .failure(.unavailable()), into: &harness.effects)
        harness.session.requestFailed(request, .unavailable(), into: &harness.effects)
        harness.session.importAnswered(request, .done, into: &harness.effects)
        harness.session.readFinished(request, lines: Array("END late=true\n".utf8), into: &harness.effects)
    }

    private mutating func check() throws {
        for action in harness.actions() {
            guard let request = action.request else { continue }
            // Requests start in the order of their commands.
            let step = try #require(notStarted.first)
            notStarted.removeFirst()
            #expect(action.runsAlone ? underWay.isEmpty : underWay.allSatisfy { !$0.isAlone })
            underWay.append((request, step, action.runsAlone))
        }
        // At most one command is held, and then nothing more is read.
        #expect(notStarted.count <= 1)
        #expect(underWay.count <= most)
        if notStarted.count == 1, harness.session.state != .closed { #expect(harness.session.isPaused) }
        for line in harness.lines() {
            if line.hasPrefix("* CHANGED revision=") {
                #expect(!isBlocked)
                told = max(told, Int64(line.dropFirst(19)) ?? -1)
            } else if line.hasPrefix("* BYE") {
                byes += 1
            } else {
                #expect(byes == 0)
                replies.append(line)
            }
        }
    }
}
