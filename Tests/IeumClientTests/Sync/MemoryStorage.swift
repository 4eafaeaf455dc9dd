import Foundation
import Synchronization
import Wire

@testable import IeumClient

/// A storage that a kill loses nothing of: what the SQLite one is to a process, this is to a simulated device.
final class MemoryStorage: SyncStorage {
    struct State: Sendable {
        var games: [GameKey: HeldGame] = [:]
        var player: PlayerID?
        var own: DeviceID?
        var epoch: UUID?
        var cursor: Revision = 0
        var clockOffset: Int64?
        var order: [GameKey] = []
        var events: [(event: StoredSyncEvent, isOpen: Bool)] = []
        var lastEvent: Int64 = 0
        var notify: (@Sendable () -> Void)?
    }

    struct Failure: Error {}

    let state = Mutex(State())

    /// The app saves.
    func save(_ key: GameKey, _ text: [UInt8]?, at wall: Timestamp) {
        let notify = state.withLock { state in
            let now = wall.advanced(byMicroseconds: state.clockOffset ?? 0)
            var game = state.games[key] ?? HeldGame(key: key, state: text, schema: 1, saved: now)
            if state.games[key] == nil { state.order.append(key) } else { game.edit(state: text, schema: 1, at: now) }
            state.games[key] = game
            return state.notify
        }
        notify?()
    }

    func syncPoint() throws -> SyncPoint { state.withLock { $0.point } }

    func meet(_ signIn: SignIn, epoch: UUID, clockOffset: Int64, offersRefused: Bool) throws -> SyncPoint {
        try state.withLock { state in
            if let player = state.player, player != signIn.player, !state.games.isEmpty {
                throw SyncStorageError.otherPlayer(player)
            }
            (state.player, state.own) = (signIn.player, signIn.device)
            if state.clockOffset == nil { state.changeAll { $0.correctClock(by: clockOffset) } }
            state.clockOffset = clockOffset
            if offersRefused { state.changeAll { $0.offerAgain() } }
            if state.epoch == nil { state.epoch = epoch }
            if state.epoch != epoch { state.startOver(epoch) }
            return state.point
        }
    }

    func unanswered() throws -> [Push] {
        state.withLock { state in state.order.compactMap { state.games[$0]?.sending } }
    }

    func takeOutgoing(limit: Int, bytes: Int) throws -> [Push] {
        state.withLock { state in
            guard let own = state.own else { return [] }
            var pushes: [Push] = []
            var size = 0
            for key in state.order where pushes.count < limit && (size < bytes || pushes.isEmpty) {
                guard let push = state.games[key]?.takePush(as: own) else { continue }
                pushes.append(push)
                size += push.state?.count ?? 0
            }
            return pushes
        }
    }

    func acknowledge(_ answers: [PushAnswer]) throws -> SyncPoint {
        state.withLock { state in
            guard let own = state.own else { return state.point }
            for answer in answers {
                if answer.receipt.revision == state.cursor + 1 { state.cursor += 1 }
                let conflict = state.games[answer.push.game]?.acknowledge(answer.push, answer.receipt, as: own).conflict
                if let conflict { state.add(.conflict(conflict), isOpen: conflict.isOpen) }
            }
            return state.point
        }
    }

    func refuse(_ push: Push, _ error: WireError) throws -> SyncPoint {
        state.withLock { state in
            if state.games[push.game]?.refuse(push, error) == true { state.add(.refused(push, error), isOpen: false) }
            return state.point
        }
    }

    func apply(_ page: ChangePage, since: Revision) throws -> SyncPoint {
        state.withLock { state in
            guard let own = state.own, since <= state.cursor else { return state.point }
            for head in page.games {
                if state.games[head.game]?.meet(head, as: own) == nil {
                    state.games[head.game] = HeldGame(head)
                    state.order.append(head.game)
                }
            }
            state.cursor = max(state.cursor, page.cursor)
            return state.point
        }
    }

    func startOver(epoch: UUID) throws -> SyncPoint {
        state.withLock { state in
            state.startOver(epoch)
            return state.point
        }
    }

    func errands(limit: Int) throws -> [SyncErrand] {
        state.withLock { state in Array(state.errands.prefix(limit)) }
    }

    func settle(_ errand: SyncErrand, _ result: SyncErrand.Result) throws -> SyncPoint {
        state.withLock { state in
            switch errand {
            case .lookUp(let key, _, _): _ = state.games[key]?.lookedUp(isThere: result != .missing)
            case .fetch(let key, let revision):
                var version: GameVersion?
                if case .found(let found) = result { version = found }
                state.closeConflicts { $0.mine.game == key && $0.otherRevision == revision ? .some(version) : nil }
            // Nothing is ever damaged here.
            case .replace: break
            }
            return state.point
        }
    }

    func events(limit: Int) throws -> [StoredSyncEvent] {
        state.withLock { state in Array(state.events.filter { !$0.isOpen }.map(\.event).prefix(limit)) }
    }

    func whenSaved(for owner: AnyObject, _ notify: (@Sendable () -> Void)?) {
        state.withLock { $0.notify = notify }
    }

    func heldGame(_ key: GameKey) throws -> HeldGame? { state.withLock { $0.games[key] } }

    func restore(_ key: GameKey, state text: [UInt8]?, schema: Int32) throws {
        save(key, text, at: .now)
    }

    func removeEvent(_ id: Int64) throws {
        state.withLock { state in state.events.removeAll { $0.event.id == id } }
    }
}

extension MemoryStorage.State {
    var errands: [SyncErrand] {
        let fetches: [SyncErrand] = events.compactMap { event, isOpen in
            guard isOpen, case .conflict(let conflict) = event.kind else { return nil }
            return .fetch(conflict.mine.game, conflict.otherRevision)
        }
        guard let own else { return fetches }
        return fetches
            + order.compactMap { key in
                guard let game = games[key], game.needsLookUp(as: own), let device = game.device else { return nil }
                return .lookUp(key, device, game.saved)
            }
    }

    var point: SyncPoint {
        let waiting = games.values.count {
            var game = $0
            return own.flatMap { game.takePush(as: $0) } != nil
        }
        return SyncPoint(
            epoch: epoch, cursor: cursor, waiting: waiting, unanswered: games.values.count { $0.sending != nil },
            hasErrands: !errands.isEmpty, lastEvent: events.last { !$0.isOpen }?.event.id ?? 0)
    }

    mutating func changeAll(_ change: (inout HeldGame) -> Void) {
        for key in order {
            guard var game = games[key] else { continue }
            change(&game)
            games[key] = game
        }
    }

    mutating func startOver(_ epoch: UUID) {
        (self.epoch, cursor) = (epoch, 0)
        changeAll { $0.startOver() }
        // The revision that was to be fetched means nothing now.
        closeConflicts { _ in .some(nil) }
    }

    mutating func add(_ kind: StoredSyncEvent.Kind, isOpen: Bool) {
        lastEvent += 1
        events.append((StoredSyncEvent(id: lastEvent, kind: kind), isOpen))
    }

    mutating func closeConflicts(_ version: (PushConflict) -> GameVersion??) {
        for index in events.indices.reversed() where events[index].isOpen {
            guard case .conflict(var conflict) = events[index].event.kind, let found = version(conflict) else {
                continue
            }
            if conflict.complete(found) {
                events[index] = (StoredSyncEvent(id: events[index].event.id, kind: .conflict(conflict)), false)
            } else {
                events.remove(at: index)
            }
        }
    }
}
