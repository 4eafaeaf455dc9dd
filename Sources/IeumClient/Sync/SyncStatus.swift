/// How a store stands with its server, in total.
///
/// That something is saved and that it is synced are two facts: `save` returns when it is on disk here, whatever this says.
public enum SyncStatus: Hashable, Sendable {
    /// Not connected; saves gather on the device, and the engine tries again by itself.
    case offline
    /// A connection is being made.
    case connecting
    /// Connected, and there is something on its way up or down.
    case syncing(SyncProgress)
    /// Connected; the server has acknowledged every save that it does not refuse (``SyncEvent/refused(_:)``), and all that it
    /// has is here.
    case upToDate
    /// The server does not know the token, the device was revoked, or the store holds another player's games. Nothing is
    /// tried any more; games and unsent saves stay.
    case signedOut
}

/// How far syncing has come since all was well.
public struct SyncProgress: Hashable, Sendable {
    /// How many saves the server has acknowledged.
    public var pushed: Int
    /// How many it has not.
    public var leftToPush: Int
    /// How many of the server's changes were passed.
    public var pulled: Int64
    /// How many are known to be left.
    public var leftToPull: Int64

    /// Puts numbers together.
    public init(pushed: Int, leftToPush: Int, pulled: Int64, leftToPull: Int64) {
        self.pushed = pushed
        self.leftToPush = leftToPush
        self.pulled = pulled
        self.leftToPull = leftToPull
    }

    /// What is done, from 0 to 1, pushes and pulls counted alike.
    public var fraction: Double {
        let done = Double(pushed) + Double(pulled)
        let all = done + Double(leftToPush) + Double(leftToPull)
        return all > 0 ? done / all : 0
    }
}

/// Why a device is signed out.
public enum SyncSignOut: Hashable, Sendable {
    /// The server knows no device with this token.
    case unknownToken
    /// The device was revoked.
    case revoked
    /// The games in the store are another player's than the token's.
    case otherPlayer
}
