import Foundation

@testable import Wire

/// A session and everything it has said, with short ways to speak to it.
struct SessionHarness {
    var session: Session
    var effects = Session.Effects()

    static let player = PlayerID(UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)))
    static let device = DeviceID(UUID(uuid: (16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)))

    init(limits: Limits = Limits()) {
        let epoch = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        session = Session(server: ServerDescription(version: "0.1.0", epoch: epoch, limits: limits))
    }

    /// A session whose device is signed in, with nothing said yet.
    static func signedIn(limits: Limits = Limits()) -> SessionHarness {
        var harness = SessionHarness(limits: limits)
        harness.signIn()
        return harness
    }

    mutating func signIn() {
        send("REGISTER")
        let request = request
        session.signedIn(
            request, as: SignIn(player: Self.player, device: Self.device, revision: 0), into: &effects)
        effects.removeAll()
    }

    mutating func send(_ line: String, at now: Timestamp = .earliest) {
        session.lineReceived(Array(line.utf8).span, at: now, into: &effects)
    }

    /// The lines said since the last look.
    mutating func lines() -> [String] {
        defer {
            effects.output.removeAll()
            effects.errorCount = 0
        }
        return String(decoding: effects.output, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// The actions since the last look.
    mutating func actions() -> [Session.Action] {
        defer { effects.actions.removeAll() }
        return effects.actions
    }

    /// The request of the last action that has one.
    var request: RequestID { effects.actions.compactMap(\.request).last ?? RequestID(rawValue: 0) }
}

extension Session.Action {
    /// The request that the action starts.
    var request: RequestID? {
        switch self {
        case .signIn(_, let request), .register(_, _, let request), .createPairingCode(_, _, let request),
            .redeem(_, _, let request), .push(_, _, _, let request), .read(_, _, let request),
            .watch(_, _, let request), .changeAccount(_, _, _, let request), .importing(_, _, _, let request):
            request
        case .unwatch, .pauseReading, .resumeReading, .close: nil
        }
    }

    /// Whether the action starts a request that must run alone.
    var runsAlone: Bool {
        switch self {
        case .push: false
        case .importing(let part, _, _, _): !part.isStaged
        default: request != nil
        }
    }
}
