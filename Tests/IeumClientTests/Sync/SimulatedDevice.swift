import Foundation
import TestSupport
import Wire

@testable import IeumClient

/// A device of the simulation: the engine's core and a storage; a kill takes the one and leaves the other.
final class SimulatedDevice {
    let token: Token
    let storage: any SimulatedStorage
    /// By how much its clock is wrong, in microseconds.
    let skew: Int64
    var core: SyncCore
    var isAlive = true
    /// Whether something was stored since the last look.
    var isToBeChecked = false
    var isOffline = false
    /// After how many more actions it is killed; nil: not.
    var actionsLeft: Int?
    /// How often its storage fails, in percent.
    var storageFailures = 0
    var link: Int?
    var timerAt: Int64?
    /// What its app saved and the server has not settled: by game the state.
    var unsettled: [GameKey: [UInt8]?] = [:]
    var signOuts: [SyncSignOut] = []
    var finished: [Int: SyncCore.WaitFailure?] = [:]
    /// What it held when it met the server's present life, after an earlier one, and what was saved since.
    var held: [GameKey: [UInt8]?] = [:]
    var editedSince: Set<GameKey> = []

    var id: DeviceID { token.device }

    init(token: Token, skew: Int64, seed: UInt64, storage: any SimulatedStorage) {
        self.storage = storage
        self.token = token
        self.skew = skew
        core = SyncCore(token: token, seed: seed)
    }

    /// Carries out an action for the storage; false when it is not one.
    func store(_ action: SyncCore.Action, fails: Bool, at now: SyncMoment) -> Bool {
        do {
            switch action {
            case .meet(let signIn, let epoch, let offset, let offersRefused):
                try check(fails)
                let before = storage.current
                if let known = before.epoch, known != epoch {
                    held = before.games.filter { $0.value.standing == .synced || $0.value.standing == .unproven }
                        .mapValues(\.state)
                    editedSince = []
                }
                do {
                    let point = try storage.meet(
                        signIn, epoch: epoch, clockOffset: offset, offersRefused: offersRefused)
                    core.met(.success(point), at: now)
                } catch let error as SyncStorageError {
                    core.met(.failure(error), at: now)
                }
            case .readUnanswered:
                try check(fails)
                core.unanswered(try storage.unanswered(), at: now)
            case .takeOutgoing(let limit, let bytes):
                try check(fails)
                let pushes = try storage.takeOutgoing(limit: limit, bytes: bytes)
                core.taken(pushes, try storage.syncPoint(), at: now)
            case .acknowledge(let answers):
                try check(fails)
                let point = try storage.acknowledge(answers)
                for answer in answers { settle(answer.push) }
                core.stored(point, at: now)
            case .refuse(let push, let error):
                try check(fails)
                let point = try storage.refuse(push, error)
                if error.code != .savedReused, error.code != .baseMismatch { settle(push) }
                core.stored(point, at: now)
            case .apply(let page, let since):
                try check(fails)
                core.stored(try storage.apply(page, since: since), at: now)
            case .startOver(let epoch):
                try check(fails)
                core.stored(try storage.startOver(epoch: epoch), at: now)
            case .readErrands(let limit):
                try check(fails)
                core.errandsRead(try storage.errands(limit: limit), at: now)
            case .settle(let errand, let result):
                try check(fails)
                core.stored(try storage.settle(errand, result), at: now)
            default: return false
            }
        } catch {
            core.storageFailed("\(error)", at: now)
        }
        return true
    }

    private func check(_ fails: Bool) throws {
        if fails { throw MemoryStorage.Failure() }
    }

    private func settle(_ push: Push) {
        if let state = unsettled[push.game], state == push.state { unsettled[push.game] = nil }
    }

    // MARK: What must always hold

    /// What is wrong with the device, given what its server has; nil: nothing.
    func problem(with server: ModelServer) -> String? {
        guard isToBeChecked else { return nil }
        isToBeChecked = false
        let state = storage.current
        for (key, text) in unsettled where state.games[key]?.state != text {
            return "the unsent save of \(key) was overwritten"
        }
        for (key, game) in state.games where game.sending != nil && game.standing != .edited {
            return "\(key) is \(game.standing) while a push of it is under way"
        }
        guard state.epoch == server.epoch else { return nil }
        for (key, head) in server.heads where head.revision <= state.cursor {
            guard let game = state.games[key] else { return "the cursor passed \(key), which is not there" }
            guard game.standing == .synced else { continue }
            guard game.base == .revision(head.revision), game.state == head.push.state else {
                return "the cursor \(state.cursor) passed revision \(head.revision) of \(key); there is \(game.base)"
            }
        }
        return nil
    }
}

/// A storage that the simulation can look into.
protocol SimulatedStorage: SyncStorage {
    var current: StoredState { get }
    func save(_ key: GameKey, _ text: [UInt8]?, at wall: Timestamp)
}

/// What is stored, as far as it is looked at.
struct StoredState {
    var games: [GameKey: HeldGame]
    var epoch: UUID?
    var cursor: Revision
    /// With the events that are not complete.
    var events: [(event: StoredSyncEvent, isOpen: Bool)]
}

extension MemoryStorage: SimulatedStorage {
    var current: StoredState {
        let state = state.withLock { $0 }
        return StoredState(games: state.games, epoch: state.epoch, cursor: state.cursor, events: state.events)
    }
}
