import Foundation
import FuzzSupport
import Wire

/// The server's side of a connection under any schedule of lines, results and ends.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSession(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var driver = Driver(input: FuzzInput(start, count))
    driver.run()
    return 0
}

private let server = ServerDescription(
    version: "fuzz", epoch: UUID(),
    limits: Limits(maxLineBytes: 4_096, maxStateBytes: 2_048, maxPipelinedPushes: 4))
private let player = PlayerID(UUID())
private let device = DeviceID(UUID())

/// Plays the shell: hands over what the input says, keeps the rules a shell keeps, and checks those of the session.
private struct Driver {
    var input: FuzzInput
    var session = Session(server: server)
    var effects = Session.Effects()
    var requests: [Request] = []
    var isWatching = false
    var told: Revision = 0
    var commands = 0
    var answers = 0
    var isClosed = false
    var isSignedIn = false

    enum Request {
        case signIn(RequestID), pairing(RequestID), account(RequestID), push(RequestID), read(RequestID)
        case importing(RequestID), watch(RequestID, Revision)

        var id: RequestID {
            switch self {
            case .signIn(let id), .pairing(let id), .account(let id), .push(let id), .read(let id), .importing(let id),
                .watch(let id, _):
                id
            }
        }
    }

    mutating func run() {
        session.connectionOpened(at: .earliest, into: &effects)
        hold(effects.output.starts(with: "IEUM 1 ".utf8), "a session greets")
        effects.removeAll()
        while !input.isEmpty {
            step()
            carryOut()
        }
        // However it went on, an end of the input lets it answer all and close.
        session.outputDrained(into: &effects)
        session.inputEnded(into: &effects)
        carryOut()
        while session.state != .closed {
            guard let request = requests.popLast() else { return hold(false, "\(session) ends") }
            session.requestFailedOrPush(request, into: &effects)
            carryOut()
        }
        hold(!session.hasWorkInFlight && !session.isPaused || session.state == .closed, "nothing is left")
    }

    private mutating func step() {
        switch input.byte() % 16 {
        case 0...7:
            guard !session.isPaused, session.state != .closed else { return }
            let line = input.line()
            session.lineReceived(line.span, at: Timestamp(clamping: Int64(commands)), into: &effects)
            commands += 1
        case 8, 9, 10: finish(failing: false)
        case 11: finish(failing: true)
        case 12:
            told = Revision(input.byte())
            session.changed(upTo: told, into: &effects)
        case 13: session.outputBlocked(into: &effects)
        case 14: session.outputDrained(into: &effects)
        default: rarely()
        }
    }

    private mutating func rarely() {
        switch input.byte() % 8 {
        case 0: session.lineTooLongUnlessPaused(into: &effects)
        case 1: session.inputEnded(into: &effects)
        case 2: session.drain(.shuttingDown(), into: &effects)
        case 3: session.hangUp(.idleTimeout, into: &effects)
        case 4: session.revoked(into: &effects)
        case 5:
            session.connectionLost()
            isClosed = true
        case 6:
            // A result that nobody waits for.
            if let stale = requests.first?.id {
                session.readFinished(stale, lines: [], into: &effects)
                requests.removeFirst()
            }
        default: break
        }
    }

    private mutating func finish(failing: Bool) {
        guard !requests.isEmpty else { return }
        let request = requests.remove(at: Int(input.byte()) % requests.count)
        guard !failing else { return session.requestFailedOrPush(request, into: &effects) }
        switch request {
        case .signIn(let id):
            isSignedIn = isSignedIn || session.state == .signingIn
            session.signedIn(id, as: SignIn(player: player, device: device, revision: 7), into: &effects)
        case .pairing(let id): session.requestFailed(id, .unavailable(), into: &effects)
        case .account(let id): session.accountChanged(id, .done, into: &effects)
        case .importing(let id): session.importAnswered(id, .done, into: &effects)
        case .push(let id):
            let receipt = PushReceipt(outcome: .advanced, revision: Revision(input.byte()), stamp: .earliest)
            session.pushFinished(id, .success(receipt), into: &effects)
        case .read(let id): session.readFinished(id, lines: Array("END cursor=1\n".utf8), into: &effects)
        case .watch(let id, let since): session.watchEstablished(id, revision: since + 1, into: &effects)
        }
    }

    private mutating func carryOut() {
        if !effects.output.isEmpty {
            hold(effects.output.last == UInt8(ascii: "\n"), "whole lines go out")
            hold(!isClosed, "nothing goes out after the close")
        }
        for action in effects.actions {
            hold(!isClosed, "nothing is asked after the close: \(action)")
            switch action {
            case .signIn(_, let id), .register(_, _, let id), .redeem(_, _, let id): requests.append(.signIn(id))
            case .createPairingCode(let whose, let by, let id): take(.pairing(id), of: whose, by)
            case .changeAccount(_, let whose, let by, let id): take(.account(id), of: whose, by)
            case .push(_, let whose, let by, let id): take(.push(id), of: whose, by)
            case .read(_, let whose, let id): take(.read(id), of: whose)
            case .importing(_, let whose, let by, let id): take(.importing(id), of: whose, by)
            case .watch(let since, let whose, let id): take(.watch(id, since), of: whose)
            case .close: isClosed = true
            case .unwatch, .pauseReading, .resumeReading: break
            }
        }
        effects.removeAll()
        let alone = requests.filter { if case .push = $0 { false } else { true } }
        hold(alone.count <= 1 || session.state == .closed, "one request but a push runs at a time")
        hold(requests.count <= 5 || session.state == .closed, "a pipeline is bounded")
    }

    /// A request that is about a player: only who is signed in has one, and it is about nobody else.
    private mutating func take(_ request: Request, of whose: PlayerID, _ by: DeviceID = device) {
        hold(
            isSignedIn && whose == player && by == device, "nothing is asked about a player but by that player's device"
        )
        requests.append(request)
    }
}

extension Session {
    fileprivate mutating func requestFailedOrPush(_ request: Driver.Request, into effects: inout Effects) {
        if case .push(let id) = request {
            pushFinished(id, .failure(.unavailable()), into: &effects)
        } else {
            requestFailed(request.id, .unavailable(), into: &effects)
        }
    }

    fileprivate mutating func lineTooLongUnlessPaused(into effects: inout Effects) {
        if !isPaused { lineTooLong(into: &effects) }
    }
}
