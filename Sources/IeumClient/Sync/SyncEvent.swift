import Foundation
import Wire

/// Something about syncing that an app may want to tell its player.
public enum SyncEvent: Hashable, Sendable {
    /// Two devices saved the same game without having seen each other's save.
    case conflict(SyncConflict)
    /// The server does not take a save, and never will. It is kept here, and the next save of the game is offered again.
    case refused(SyncRefusal)
    /// The device is signed out; nothing is tried any more.
    case signedOut(SyncSignOut)
}

/// Both sides of a conflict. Nothing is lost: either side can be restored.
public struct SyncConflict: Hashable, Sendable {
    /// The game's type.
    public let collection: String
    /// Which game of that type.
    public let id: String
    /// Whether this device's version is the one that all devices show now.
    public let hasMineWon: Bool
    /// This device's version.
    public let mine: SyncVersion
    /// The other device's; nil when the server has it no longer.
    public let theirs: SyncVersion?

    /// The version that all devices show now.
    public var winner: SyncVersion? { hasMineWon ? mine : theirs }
    /// The version that is in the history only.
    public var loser: SyncVersion? { hasMineWon ? theirs : mine }

    init(_ conflict: PushConflict) {
        collection = conflict.mine.game.collection
        id = conflict.mine.game.id
        hasMineWon = conflict.outcome == .won
        mine = SyncVersion(conflict.mine)
        theirs = conflict.other.map { SyncVersion($0) }
    }
}

/// A save that the server does not take.
public struct SyncRefusal: Hashable, Sendable {
    /// The game's type.
    public let collection: String
    /// Which game of that type.
    public let id: String
    /// Why: a code of Documentation/errors.md with words.
    public let error: SyncError

    init(_ push: Push, _ error: WireError) {
        collection = push.game.collection
        id = push.game.id
        self.error = SyncError(error)
    }
}

/// One version of a game, with its state.
public struct SyncVersion: Hashable, Sendable {
    /// The game's type.
    public let collection: String
    /// Which game of that type.
    public let id: String
    /// Its number among all versions of its player.
    public let revision: Int64
    /// When it was saved.
    public let saved: Date
    /// The id of the device that saved it.
    public let device: String
    /// The version of the state's shape, as the app counts.
    public let schemaVersion: Int
    /// The JSON text; nil when this version deletes the game. ``GameStore/object(_:in:)`` reads it as a value.
    public let state: Data?

    init(_ version: GameVersion) {
        collection = version.game.collection
        id = version.game.id
        revision = version.header.revision
        saved = Date(version.header.saved)
        device = version.header.device.description
        schemaVersion = Int(version.header.schema)
        state = version.state.map { Data($0) }
    }
}

/// A line of a game's history: a version without its state.
public struct SyncVersionInfo: Hashable, Sendable {
    /// The game's type.
    public let collection: String
    /// Which game of that type.
    public let id: String
    /// Its number among all versions of its player.
    public let revision: Int64
    /// What became of it: `created`, `advanced`, `won` or `lost`.
    public let outcome: String
    /// When it was saved, by the device's clock.
    public let saved: Date
    /// When the server got it.
    public let received: Date
    /// The id of the device that saved it.
    public let device: String
    /// The version that it met, if it met one.
    public let rival: Int64?
    /// The bytes of its state.
    public let size: Int
    /// Whether it is what all devices show.
    public let isHead: Bool
    /// Whether it deletes the game.
    public let isDeleted: Bool

    init(_ entry: VersionEntry) {
        collection = entry.game.collection
        id = entry.game.id
        revision = entry.detail.revision
        outcome = entry.detail.outcome.rawValue
        saved = Date(entry.detail.saved)
        received = Date(entry.detail.received)
        device = entry.detail.device.description
        rival = entry.detail.rival
        size = entry.detail.size
        isHead = entry.detail.isHead
        isDeleted = entry.detail.isTombstone
    }
}

extension Date {
    /// The nearest date: a `Date` is a floating-point number.
    init(_ time: Timestamp) {
        self.init(timeIntervalSince1970: Double(time.microseconds) / 1_000_000)
    }
}

/// How one game stands with the server.
public enum GameSyncState: Hashable, Sendable {
    /// The server has what is here.
    case synced
    /// It is saved here, and the server has not acknowledged it.
    case saved
    /// The server does not take it; ``SyncEvent/refused(_:)`` told why.
    case refused
}

/// The events of an engine, oldest first. An event that was handed out is over when the next one is asked for; one that the app
/// was killed over comes again. Meant for one reader.
public struct SyncEvents: AsyncSequence, Sendable {
    /// It never fails.
    public typealias Failure = Never

    let hub: SyncHub
    let storage: any SyncStorage

    /// Makes an iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(hub: hub, storage: storage, signals: hub.eventSignals().makeAsyncIterator())
    }

    /// Hands out one event after the other.
    public struct Iterator: AsyncIteratorProtocol {
        let hub: SyncHub
        let storage: any SyncStorage
        var signals: AsyncStream<Void>.Iterator
        var taken: Int64?

        /// The next event; nil when the engine is gone or the task is cancelled.
        public mutating func next() async -> SyncEvent? {
            if let taken {
                // What cannot be removed now comes again, which is better than not at all.
                try? storage.removeEvent(taken)
                self.taken = nil
            }
            while true {
                if let reason = hub.takeSignOut() { return .signedOut(reason) }
                if let event = try? storage.events(limit: 1).first {
                    taken = event.id
                    switch event.kind {
                    case .conflict(let conflict): return .conflict(SyncConflict(conflict))
                    case .refused(let push, let error): return .refused(SyncRefusal(push, error))
                    }
                }
                guard await signals.next() != nil else { return nil }
            }
        }
    }
}
