import Foundation
import TestSupport
import Testing
import Wire

@testable import IeumClient

/// A core that talks with a server made of lines, by a clock that is set by hand.
private struct CoreTalk {
    let device: SimulatedDevice
    let epoch = UUID()
    var now = SyncMoment(instant: .now, wall: Timestamp(clamping: 1_790_000_000_000_000))
    private(set) var sent: [String] = []
    private(set) var connections = 0
    private(set) var told: [SyncStatus] = []
    private(set) var acknowledged: [Int] = []
    private(set) var finished: [Int: SyncCore.WaitFailure?] = [:]
    var stateLimit = 1 << 20
    /// Whether the storage refuses to take answers: the disk is full.
    var isDiskFull = false

    init(seed: UInt64) throws {
        let (player, own) = (PlayerID(UUID()), DeviceID(UUID()))
        let token = try #require(Token(player: player, device: own, secret: Array(repeating: 7, count: 32)))
        device = SimulatedDevice(token: token, skew: 0, seed: seed, storage: MemoryStorage())
        device.core.start(SyncPoint(), at: now)
        perform()
    }

    var core: SyncCore {
        get { device.core }
        nonmutating set { device.core = newValue }
    }

    /// How long until the core wants to be woken.
    var wait: Duration? { core.deadline.map { $0 - now.instant } }

    mutating func pass(_ time: Duration) {
        now.instant += time
        core.timePassed(to: now)
        perform()
    }

    /// Lines that come together: what they ask for is done when all are read.
    mutating func receive(_ lines: String...) { receive(lines) }

    mutating func receive(_ lines: [String]) {
        for line in lines { core.lineReceived(Array(line.utf8).span, at: now) }
        perform()
    }

    mutating func perform() {
        while !core.actions.isEmpty {
            let actions = core.actions
            core.actions = []
            for action in actions {
                let isAnswer = if case .acknowledge = action { true } else { false }
                if device.store(action, fails: isDiskFull && isAnswer, at: now) { continue }
                switch action {
                case .connect: connections += 1
                case .send(let bytes):
                    sent += String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
                case .tell(let status): told.append(status)
                case .finishWaiter(let id, let failure): finished[id] = .some(failure)
                default: break
                }
            }
            acknowledged += actions.compactMap { if case .acknowledge(let answers) = $0 { answers.count } else { nil } }
        }
    }

    mutating func greet() {
        var bytes: [UInt8] = []
        Greeting(
            server: "0.1.0", epoch: epoch, maxLineBytes: 1 << 22, maxStateBytes: stateLimit, time: now.wall
        ).print(into: &bytes)
        receive(String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines))
    }

    /// Up to the watch's answer: nothing to push, nothing to pull.
    mutating func signIn() {
        greet()
        receive("OK player=\(device.token.player) device=\(device.token.device) revision=0")
        receive("END cursor=0 more=false")
        receive("OK revision=0")
    }

    /// What was pushed and not stored as answered goes again, before anything else is asked.
    mutating func signInAndPushAgain() {
        greet()
        receive("OK player=\(device.token.player) device=\(device.token.device) revision=1")
        receive("OK outcome=repeated first=created revision=1 stamp=2026-09-21T13:33:20.000000Z")
    }

    mutating func fail() {
        core.connectionEnded(.unreachable("nobody is there"), at: now)
        perform()
    }

    mutating func save(_ count: Int) throws {
        for number in 0..<count {
            let storage = device.storage
            storage.save(try GameKey(collection: "a", id: "g\(number)"), Array("{}".utf8), at: now.wall)
        }
        core.savedLocally(try device.storage.syncPoint(), at: now)
        perform()
    }

    var pushes: Int { sent.count { $0.hasPrefix("PUSH ") } }
}

@Suite("The sync engine's core")
struct SyncCoreTests {
    @Test(
        "waits grow to a minute, each a random part of its bound, and never more",
        arguments: [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (7, 60), (30, 60)] as [(Int, Int)])
    func waits(_ failures: Int, _ bound: Int) throws {
        var waits: [Duration] = []
        for seed in 0..<200 {
            var talk = try CoreTalk(seed: UInt64(seed))
            for _ in 0..<failures {
                talk.fail()
                talk.pass(try #require(talk.wait))
            }
            talk.fail()
            let wait = try #require(talk.wait)
            #expect(wait >= .zero && wait <= .seconds(bound))
            waits.append(wait)
        }
        // All of the range is used: devices that lost the same server do not come back together.
        #expect(waits.contains { $0 < .seconds(bound) / 4 } && waits.contains { $0 > .seconds(bound) * 3 / 4 })
        #expect(Set(waits).count > 150)
    }

    @Test("a login that succeeds, and all being well, begin the waits anew")
    func waitsBeginAnew() throws {
        for seed in 0..<50 {
            var talk = try CoreTalk(seed: UInt64(seed))
            for _ in 0..<8 {
                talk.fail()
                talk.pass(try #require(talk.wait))
            }
            talk.signIn()
            #expect(talk.told.last == .upToDate)
            talk.fail()
            #expect(try #require(talk.wait) <= .seconds(1))
        }
    }

    @Test("the server's retry-after is the least wait, at the login and at a push", arguments: 0..<20 as Range<UInt64>)
    func retryAfter(_ seed: UInt64) throws {
        var login = try CoreTalk(seed: seed)
        login.greet()
        login.receive("ERR unavailable retry-after=5 \"the database is away\"")
        #expect(login.core.status == .offline)
        #expect((.seconds(5) ... .seconds(6)).contains(try #require(login.wait)))

        var push = try CoreTalk(seed: seed)
        push.signIn()
        try push.save(1)
        #expect(push.pushes == 1)
        push.receive("ERR unavailable retry-after=5 \"the database is away\"")
        #expect(push.core.status == .offline)
        #expect((.seconds(5) ... .seconds(6)).contains(try #require(push.wait)))
        #expect(push.connections == 1)
        // The same push again, over the same connection.
        push.pass(.seconds(6))
        #expect(push.pushes == 2 && push.connections == 1)
        #expect(Set(push.sent.filter { $0.hasPrefix("PUSH ") }).count == 1)
    }

    @Test("a connection that falls silent is asked after 10 seconds and given up 10 seconds later")
    func heartbeat() throws {
        var talk = try CoreTalk(seed: 1)
        talk.signIn()
        #expect(talk.wait == .seconds(10))
        talk.pass(.milliseconds(9_999))
        #expect(!talk.sent.contains("PING"))
        talk.pass(.milliseconds(1))
        #expect(talk.sent.last == "PING")
        talk.receive("OK")
        #expect(talk.core.status == .upToDate && talk.wait == .seconds(10))
        talk.pass(.seconds(10))
        #expect(talk.sent.count { $0 == "PING" } == 2)
        talk.pass(.milliseconds(9_999))
        #expect(talk.core.status == .upToDate)
        talk.pass(.milliseconds(1))
        #expect(talk.core.status == .offline)
        guard case .waiting = talk.core.phase else {
            Issue.record("not waiting: \(talk.core.phase)")
            return
        }
    }

    @Test("what the server says puts the heartbeat off")
    func noticesAreSignsOfLife() throws {
        var talk = try CoreTalk(seed: 1)
        talk.signIn()
        for _ in 0..<5 {
            talk.pass(.seconds(8))
            try talk.save(1)
            talk.receive(["OK outcome=created revision=\(talk.pushes) stamp=2026-09-21T13:33:20.000000Z"])
        }
        #expect(!talk.sent.contains("PING"))
    }

    @Test("retryNow connects at once, ends a pause, and asks a connection that may be dead")
    func retryNow() throws {
        var talk = try CoreTalk(seed: 3)
        for _ in 0..<9 {
            talk.fail()
            talk.pass(try #require(talk.wait))
        }
        talk.fail()
        let connections = talk.connections
        talk.core.retryNow(at: talk.now)
        talk.perform()
        #expect(talk.connections == connections + 1)
        // The waits begin anew.
        talk.fail()
        #expect(try #require(talk.wait) <= .seconds(1))

        var paused = try CoreTalk(seed: 3)
        paused.signIn()
        try paused.save(1)
        paused.receive("ERR unavailable retry-after=60 \"the database is away\"")
        #expect(paused.pushes == 1)
        paused.core.retryNow(at: paused.now)
        paused.perform()
        #expect(paused.pushes == 2)

        var idle = try CoreTalk(seed: 3)
        idle.signIn()
        idle.core.retryNow(at: idle.now)
        idle.perform()
        #expect(idle.sent.last == "PING")
        idle.pass(.seconds(5))
        #expect(idle.core.status == .offline)
    }

    @Test("a sign-out is for good: no wait, no try, whatever comes", arguments: ["login-failed", "device-revoked"])
    func signedOut(_ code: String) throws {
        var talk = try CoreTalk(seed: 4)
        talk.greet()
        talk.receive("ERR \(code) \"go away\"")
        #expect(talk.core.phase == .signedOut && talk.wait == nil)
        talk.pass(.seconds(3_600))
        talk.core.retryNow(at: talk.now)
        talk.perform()
        #expect(talk.connections == 1)
    }

    @Test("answers that come together are stored in one transaction, and told once")
    func answersTogether() throws {
        var talk = try CoreTalk(seed: 5)
        talk.signIn()
        try talk.save(60)
        #expect(talk.pushes == 60)
        let told = talk.told.count
        talk.receive((1...60).map { "OK outcome=created revision=\($0) stamp=2026-09-21T13:33:20.000000Z" })
        #expect(talk.acknowledged == [60])
        #expect(talk.told.count - told <= 2)
        #expect(talk.core.status == .upToDate)
    }

    @Test("while the storage fails the waits grow, though the server takes and answers each time")
    func fullDisk() throws {
        var longest = Duration.zero
        for seed in 0..<50 as Range<UInt64> {
            var talk = try CoreTalk(seed: seed)
            talk.signIn()
            talk.isDiskFull = true
            try talk.save(1)
            talk.receive("OK outcome=created revision=1 stamp=2026-09-21T13:33:20.000000Z")
            var waited = Duration.zero
            for _ in 0..<12 {
                let wait = try #require(talk.wait)
                #expect(talk.core.status == .offline && wait <= .seconds(60))
                waited += wait
                talk.pass(wait)
                talk.signInAndPushAgain()
            }
            // With waits of a second at the most these would be twelve.
            #expect(waited > .seconds(30))
            longest = max(longest, waited)
            talk.isDiskFull = false
            talk.pass(try #require(talk.wait))
            talk.signInAndPushAgain()
            talk.receive("END cursor=1 more=false")
            talk.receive("OK revision=1")
            #expect(talk.core.status == .upToDate)
        }
        #expect(longest > .seconds(200))
    }

    @Test("saves cost nothing while there is nobody to send them to")
    func offlineSaves() throws {
        var talk = try CoreTalk(seed: 6)
        #expect(!talk.core.listensToSaves)
        talk.signIn()
        #expect(talk.core.listensToSaves)
        talk.fail()
        #expect(!talk.core.listensToSaves)
    }

    @Test("progress only rises, counts a push once, and is whole at the end", arguments: [1, 2, 60])
    func progress(_ count: Int) throws {
        var talk = try CoreTalk(seed: 7)
        talk.signIn()
        let told = talk.told.count
        try talk.save(count)
        for revision in 1...count {
            talk.receive("OK outcome=created revision=\(revision) stamp=2026-09-21T13:33:20.000000Z")
        }
        #expect(talk.core.status == .upToDate)
        var fraction = 0.0
        for status in talk.told.dropFirst(told).dropLast() {
            guard case .syncing(let progress) = status else {
                Issue.record("\(status)")
                return
            }
            #expect(progress.pulled == 0 && progress.leftToPull == 0)
            #expect(progress.pushed + progress.leftToPush == count)
            #expect(progress.fraction >= fraction)
            fraction = progress.fraction
        }
    }

    @Test("who waits hears that the storage failed, and the trouble says so until all is well")
    func waitersOfAFullDisk() throws {
        var talk = try CoreTalk(seed: 8)
        talk.signIn()
        talk.isDiskFull = true
        try talk.save(1)
        talk.core.wait(5, at: talk.now)
        talk.perform()
        talk.receive(["OK outcome=created revision=1 stamp=2026-09-21T13:33:20.000000Z", "END cursor=0 more=false"])
        guard case .storage(let reason)?? = talk.finished[5] else {
            Issue.record("\(talk.finished)")
            return
        }
        #expect(talk.core.problem == .storage(reason))
        talk.isDiskFull = false
        talk.pass(try #require(talk.wait))
        talk.signInAndPushAgain()
        talk.receive("END cursor=1 more=false")
        talk.receive("OK revision=1")
        #expect(talk.core.problem == nil && talk.core.status == .upToDate)
    }

    @Test("another player's games are told as the trouble, and to who waits")
    func otherPlayer() throws {
        var talk = try CoreTalk(seed: 9)
        talk.device.core.stop(at: talk.now)
        talk.perform()
        try talk.save(1)
        _ = try talk.device.storage.meet(
            SignIn(player: PlayerID(UUID()), device: DeviceID(UUID()), revision: 0), epoch: UUID(), clockOffset: 0,
            offersRefused: false)
        talk.core.start(try talk.device.storage.syncPoint(), at: talk.now)
        talk.core.wait(1, at: talk.now)
        talk.perform()
        talk.greet()
        talk.receive("OK player=\(talk.device.token.player) device=\(talk.device.token.device) revision=0")
        #expect(talk.core.status == .signedOut && talk.core.problem == .otherPlayer)
        #expect(talk.finished[1] == .some(.otherPlayer))
        talk.core.wait(2, at: talk.now)
        talk.perform()
        #expect(talk.finished[2] == .some(.otherPlayer))
    }

    @Test("what was refused is offered again once a start, and when the server's limits are others")
    func limitsChange() throws {
        var talk = try CoreTalk(seed: 10)
        func standing() throws -> HeldGame.Standing? {
            try talk.device.storage.heldGame(GameKey(collection: "a", id: "g0"))?.standing
        }
        talk.signIn()
        try talk.save(1)
        talk.receive("ERR state-too-large \"too large\"")
        #expect(try standing() == .refused)
        #expect(talk.pushes == 1 && talk.core.status == .upToDate)
        // The same limits: nothing new.
        talk.fail()
        talk.pass(try #require(talk.wait))
        talk.signIn()
        #expect(try standing() == .refused)
        #expect(talk.pushes == 1 && talk.core.status == .upToDate)
        // Other limits.
        talk.fail()
        talk.pass(try #require(talk.wait))
        talk.stateLimit = 1 << 21
        talk.signIn()
        #expect(talk.pushes == 2)
        talk.receive("ERR state-too-large \"too large\"")
        #expect(try standing() == .refused)
        // Another start.
        talk.core.stop(at: talk.now)
        talk.perform()
        talk.core.start(try talk.device.storage.syncPoint(), at: talk.now)
        talk.perform()
        talk.signIn()
        #expect(talk.pushes == 3)
        talk.receive("OK outcome=created revision=1 stamp=2026-09-21T13:33:20.000000Z")
        #expect(try standing() == .synced)
        #expect(talk.core.status == .upToDate)
    }

    @Test("a server that is not there, and one that is there and silent, are told apart")
    func silence() throws {
        var talk = try CoreTalk(seed: 11)
        // The connection's own deadline is before this one: it says that nobody is there.
        talk.pass(.milliseconds(9_999))
        #expect(talk.core.status == .connecting)
        talk.pass(.milliseconds(1))
        #expect(talk.core.problem == .offline("the server did not answer within 10 s"))
        talk.pass(try #require(talk.wait))
        talk.fail()
        #expect(talk.core.problem == .offline("the server cannot be reached: nobody is there"))
    }
}
