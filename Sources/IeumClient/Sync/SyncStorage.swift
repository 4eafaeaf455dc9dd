import Foundation
import Wire

/// What the sync engine keeps on the device: the games, what is under way, and how far the server's changes are read.
///
/// Every call is one transaction: what it says has happened is on disk when it returns, and nothing of it when it throws.
/// Local saves may come at any time between the calls, from other threads and processes. What happens to each game is
/// ``HeldGame``'s to say.
package protocol SyncStorage: Sendable {
    /// Where things stand.
    func syncPoint() throws -> SyncPoint

    /// Sets whom to call after each local save, on any thread; nil: nobody, unless somebody else has set it since. Not called
    /// for what the calls below change.
    func whenSaved(for owner: AnyObject, _ notify: (@Sendable () -> Void)?)

    /// A number that changes when another process has changed what is stored here.
    func foreignChanges() throws -> Int64

    /// The server let this device in. Takes note of who it is, and starts over if the server's database began a new life.
    /// - Parameters:
    ///   - clockOffset: the server's clock minus this device's, in microseconds, which later saves are corrected by; 0 when
    ///     the device's clock is right.
    ///   - offersRefused: whether what was refused is to be offered again: the server may take it now.
    /// - Throws: ``SyncStorageError/otherPlayer`` when the games in it are another player's.
    func meet(_ signIn: SignIn, epoch: UUID, clockOffset: Int64, offersRefused: Bool) throws -> SyncPoint

    /// What was taken to be sent and has no answer, in its order.
    func unanswered() throws -> [Push]

    /// Takes states that the server lacks, oldest first, to be sent: from now on they are under way. At most so many, and
    /// no further one once so many bytes of states are taken.
    func takeOutgoing(limit: Int, bytes: Int) throws -> [Push]

    /// The server answered pushes, in this order.
    func acknowledge(_ answers: [PushAnswer]) throws -> SyncPoint

    /// The server did not take a push.
    func refuse(_ push: Push, _ error: WireError) throws -> SyncPoint

    /// The server told the heads between `since` and the page's cursor. A page that begins behind the stored cursor is
    /// ignored: there would be a gap.
    func apply(_ page: ChangePage, since: Revision) throws -> SyncPoint

    /// The server does not know the cursor: everything held is to be proven anew, and the cursor is 0.
    func startOver(epoch: UUID) throws -> SyncPoint

    /// What to ask the server for, besides changes.
    func errands(limit: Int) throws -> [SyncErrand]

    /// The server answered an errand.
    func settle(_ errand: SyncErrand, _ result: SyncErrand.Result) throws -> SyncPoint

    /// The oldest events that nobody has taken, and that are complete.
    func events(limit: Int) throws -> [StoredSyncEvent]

    /// An event was taken: it does not come again.
    func removeEvent(_ id: Int64) throws

    /// How a game stands; nil: there is none.
    func heldGame(_ key: GameKey) throws -> HeldGame?

    /// Saves a state as the app would, without going through its type: to take a version out of the history again.
    func restore(_ key: GameKey, state: [UInt8]?, schema: Int32) throws
}

extension SyncStorage {
    /// What nobody else can open does not change.
    package func foreignChanges() throws -> Int64 { 0 }
}

/// Where a device stands with its server.
package struct SyncPoint: Hashable, Sendable {
    /// The life of the server's database that the numbers belong to; nil before the first contact.
    package var epoch: UUID?
    /// Up to where the server's changes are here.
    package var cursor: Revision
    /// How many games have a state to be taken by ``SyncStorage/takeOutgoing(limit:bytes:)``.
    package var waiting: Int
    /// How many pushes are under way.
    package var unanswered: Int
    /// Whether there are errands.
    package var hasErrands: Bool
    /// The newest event that may be handed out; 0: there is none.
    package var lastEvent: Int64

    /// Puts a point together.
    package init(
        epoch: UUID? = nil, cursor: Revision = 0, waiting: Int = 0, unanswered: Int = 0, hasErrands: Bool = false,
        lastEvent: Int64 = 0
    ) {
        self.epoch = epoch
        self.cursor = cursor
        self.waiting = waiting
        self.unanswered = unanswered
        self.hasErrands = hasErrands
        self.lastEvent = lastEvent
    }
}

/// A push and the server's answer.
package struct PushAnswer: Hashable, Sendable {
    /// What was pushed.
    package var push: Push
    /// What the server said.
    package var receipt: PushReceipt
}

/// Something to ask the server for, besides changes.
package enum SyncErrand: Hashable, Sendable {
    /// The version that a push overtook, to show it.
    case fetch(GameKey, Revision)
    /// Whether the history has a version, by who saved it and when.
    case lookUp(GameKey, DeviceID, Timestamp)
    /// The head of a game whose state here is damaged.
    case replace(GameKey)

    /// Which game it is about.
    package var game: GameKey {
        switch self {
        case .fetch(let game, _), .lookUp(let game, _, _), .replace(let game): game
        }
    }

    /// What the server said.
    package enum Result: Hashable, Sendable {
        /// The version; of a look-up, it is there.
        case found(GameVersion?)
        /// There is no such version.
        case missing
    }
}

/// Something that the app is to be told, once, even if it is killed before.
package struct StoredSyncEvent: Hashable, Sendable {
    /// Rises from event to event.
    package var id: Int64
    /// What happened.
    package var kind: Kind

    /// What happened.
    package enum Kind: Hashable, Sendable {
        /// Two versions met.
        case conflict(PushConflict)
        /// The server does not take a state.
        case refused(Push, WireError)
    }

    /// Puts an event together.
    package init(id: Int64, kind: Kind) {
        self.id = id
        self.kind = kind
    }
}

/// Why a storage refuses what the engine tells it.
package enum SyncStorageError: Error, Hashable, Sendable {
    /// The games in the store are another player's.
    case otherPlayer(PlayerID)
}
