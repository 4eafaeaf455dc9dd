import Foundation
import FuzzSupport
import Wire

@testable import IeumClient

/// The client's sync engine beside a server that says what it likes, an app that saves, and time that goes by.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSync(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var talk = Talk(input: FuzzInput(start, count))
    talk.run()
    return 0
}

private let player = PlayerID(UUID())
private let device = DeviceID(UUID())
private let epochs = [UUID(), UUID()]
private let began = SyncMoment(instant: .now, wall: Timestamp(clamping: 1_790_000_000_000_000))

/// Plays app, shell, clock and server as the input says, and checks what must hold whatever the server does.
private struct Talk {
    var input: FuzzInput
    var core: SyncCore
    let storage = MemoryStorage()
    var now = began
    var isConnected = false
    var failsToStore = false
    /// The verbs that wait for an answer, so that the input can give a fitting one.
    var asked: [String] = []
    /// What the app saved and no server took or refused.
    var unsettled: [GameKey: [UInt8]?] = [:]
    /// What the app asked and was not answered.
    var questions: Set<Int> = []
    var nextQuestion = 0

    init(input: FuzzInput) {
        self.input = input
        let token = Token(player: player, device: device, secret: Array(repeating: 7, count: 32))
        guard let token else { fatalError("a token can be made") }
        core = SyncCore(token: token, seed: 7)
    }

    mutating func run() {
        core.start(SyncPoint(), at: now)
        carryOut()
        while !input.isEmpty {
            step()
            carryOut()
            check()
        }
        // Whatever came before, a stop is the end of it.
        core.stop(at: now)
        carryOut()
        hold(!isConnected && questions.isEmpty && core.deadline == nil, "a stopped engine leaves nothing open")
    }

    private mutating func step() {
        switch input.byte() % 16 {
        case 0...3: receive(input.line())
        case 4...8: receive(Array(fittingLine().utf8))
        case 9, 10: save()
        case 11: pass(.milliseconds(Int(input.byte()) * 100))
        case 12:
            guard let deadline = core.deadline else { return }
            pass(max(.zero, deadline - now.instant))
            if let next = core.deadline {
                // Carried out, or the next is later: an engine that wakes for nothing would spin.
                hold(next > now.instant || !core.actions.isEmpty, "\(core.phase) sleeps after it woke")
            }
        case 13:
            isConnected ? core.connectionEnded(.closed, at: now) : core.connectionEnded(.unreachable("away"), at: now)
        case 14: core.lineTooLong(at: now)
        default: rarely()
        }
    }

    private mutating func rarely() {
        switch input.byte() % 6 {
        case 0: core.retryNow(at: now)
        case 1: core.wait(Int(input.byte()), at: now)
        case 2: core.cancelWait(Int(input.byte()))
        case 3:
            nextQuestion += 1
            questions.insert(nextQuestion)
            core.ask(.devices(after: nil, limit: nil), for: nextQuestion, at: now)
        case 4: failsToStore.toggle()
        default:
            core.stop(at: now)
            carryOut()
            core.start((try? storage.syncPoint()) ?? SyncPoint(), at: now)
        }
    }

    private mutating func pass(_ time: Duration) {
        now.instant += time
        now.wall = now.wall.advanced(byMicroseconds: Int64(time / .microseconds(1)))
        core.timePassed(to: now, movedBytes: Int(input.byte()))
    }

    private mutating func receive(_ line: [UInt8]) {
        guard isConnected else { return }
        core.lineReceived(line.span, at: now)
    }

    private mutating func save() {
        let byte = input.byte()
        guard let key = try? GameKey(collection: "a", id: "g\(byte % 4)") else { return }
        let state: [UInt8]? = byte & 0x40 == 0 ? Array("{\"n\":\(input.byte())}".utf8) : nil
        storage.save(key, state, at: now.wall)
        unsettled[key] = .some(state)
        guard core.listensToSaves, let point = try? storage.syncPoint() else { return }
        core.savedLocally(point, at: now)
    }

    /// An answer such as a server could give to what was asked first.
    private mutating func fittingLine() -> String {
        func number() -> Int { Int(input.byte() % 8) }
        let time = "2026-09-21T13:33:2\(input.byte() % 10).000000Z"
        if input.byte() % 8 == 0 {
            let code = input.pick([
                "unavailable retry-after=5", "rate-limited retry-after=99999999999", "login-failed", "busy",
                "saved-reused", "base-mismatch", "cursor-ahead revision=3", "device-revoked", "not-signed-in", "gone",
            ])
            if !asked.isEmpty, core.session?.greeting != nil { asked.removeFirst() }
            return "ERR \(code ?? "busy") \"no\""
        }
        guard core.session?.greeting != nil else {
            let epoch = epochs[Int(input.byte() % 2)]
            let limit = input.byte() % 8 == 0 ? 1_024 : 1_048_576
            return "IEUM 1 server=9 epoch=\(epoch) max-line=\(limit) max-state=\(limit) time=\(time)"
        }
        if input.byte() % 8 == 0 { return "* CHANGED revision=\(number())" }
        let game =
            "a g\(number() % 4) revision=\(number() + 1) saved=\(time) stamp=\(time) device=\(input.byte() % 2 == 0 ? device : DeviceID(epochs[0])) schema=1 {}"
        switch asked.first {
        case "LOGIN":
            asked.removeFirst()
            return "OK player=\(player) device=\(device) revision=\(number())"
        case "PUSH", "DELETE":
            asked.removeFirst()
            let outcome = input.pick(["created", "advanced", "won", "lost", "repeated first=lost"]) ?? "created"
            return "OK outcome=\(outcome) revision=\(number()) stamp=\(time) rival=\(number()) head=\(number())"
        case "PULL":
            if input.byte() % 2 == 0 { return "GAME \(game)" }
            asked.removeFirst()
            return "END cursor=\(number()) more=\(input.byte() % 4 == 0)"
        case "GET":
            if input.byte() % 2 == 0 { return "GAME \(game)" }
            asked.removeFirst()
            return "END"
        case "HISTORY":
            if input.byte() % 2 == 0 { return "VERSION \(game.dropLast(3)) outcome=created received=\(time) size=2" }
            asked.removeFirst()
            return "END more=\(input.byte() % 2 == 0) before=\(number())"
        case nil: return "OK"
        default:
            asked.removeFirst()
            return "OK revision=\(number())"
        }
    }

    // MARK: The shell

    private mutating func carryOut() {
        var rounds = 0
        while !core.actions.isEmpty {
            rounds += 1
            // A page of pulls at a time, and so on: with no answer from the server it comes to an end.
            hold(rounds < 1_000, "\(core.phase) comes to rest")
            let actions = core.actions
            core.actions = []
            for action in actions { carryOut(action) }
        }
    }

    private mutating func carryOut(_ action: SyncCore.Action) {
        switch action {
        case .connect:
            hold(!isConnected, "one connection at a time")
            isConnected = true
            asked = []
        case .disconnect: isConnected = false
        case .send(let bytes):
            hold(isConnected, "nothing is sent without a connection")
            hold(bytes.last == UInt8(ascii: "\n"), "whole lines are sent")
            asked += String(decoding: bytes, as: UTF8.self).split(separator: "\n").map {
                String($0.prefix { $0 != " " })
            }
        case .setMaxLineBytes(let count): hold(1_024...(65 << 20) ~= count, "a line's length is bounded: \(count)")
        case .answer(let id, _): hold(questions.remove(id) != nil, "a question is answered once")
        case .tell, .tellSignedOut, .finishWaiter: break
        default:
            do {
                if failsToStore { throw MemoryStorage.Failure() }
                try store(action)
            } catch {
                core.storageFailed("\(error)", at: now)
            }
        }
    }

    private mutating func store(_ action: SyncCore.Action) throws {
        switch action {
        case .meet(let signIn, let epoch, let offset, let offersRefused):
            let point = try storage.meet(signIn, epoch: epoch, clockOffset: offset, offersRefused: offersRefused)
            core.met(.success(point), at: now)
        case .readUnanswered: core.unanswered(try storage.unanswered(), at: now)
        case .takeOutgoing(let limit, let bytes):
            let pushes = try storage.takeOutgoing(limit: limit, bytes: bytes)
            core.taken(pushes, try storage.syncPoint(), at: now)
        case .acknowledge(let answers):
            let point = try storage.acknowledge(answers)
            for answer in answers { settle(answer.push) }
            core.stored(point, at: now)
        case .refuse(let push, let error):
            let point = try storage.refuse(push, error)
            if error.code != .savedReused, error.code != .baseMismatch { settle(push) }
            core.stored(point, at: now)
        case .apply(let page, let since): core.stored(try storage.apply(page, since: since), at: now)
        case .startOver(let epoch): core.stored(try storage.startOver(epoch: epoch), at: now)
        case .readErrands(let limit): core.errandsRead(try storage.errands(limit: limit), at: now)
        case .settle(let errand, let result): core.stored(try storage.settle(errand, result), at: now)
        case .connect, .disconnect, .send, .setMaxLineBytes, .readToken, .answer, .tell, .tellSignedOut, .finishWaiter:
            break
        }
    }

    private mutating func settle(_ push: Push) {
        if let state = unsettled[push.game], state == push.state { unsettled[push.game] = nil }
    }

    // MARK: What must hold

    private func check() {
        let state = storage.state.withLock { $0 }
        for (key, text) in unsettled {
            hold(state.games[key]?.state == text, "no server takes a save away that it has not answered: \(key)")
        }
        for (key, game) in state.games where game.sending != nil {
            hold(game.standing == .edited, "\(key) is \(game.standing) while a push of it is under way")
        }
        if case .waiting(let time) = core.phase {
            hold(time <= now.instant + .seconds(3_660), "no server sends a device away for longer than an hour")
        }
        hold(core.storing >= 0, "the storage's answers are counted")
    }
}
