import Wire

/// A push of this device's met another device's version of the same game, and neither had seen the other.
package struct PushConflict: Hashable, Sendable {
    /// How the push fared.
    package enum Outcome: String, Hashable, Sendable {
        /// It is the head now, and the other one is in the history only.
        case won
        /// It is in the history only, and the other one is the head.
        case lost
    }

    /// How the push fared.
    package var outcome: Outcome
    /// What this device pushed, as the server numbered it.
    package var mine: GameVersion
    /// The revision of the other version.
    package var otherRevision: Revision
    /// The other version; nil until it is fetched, and for ever when the server has it no longer.
    package var other: GameVersion?
    /// Whether the other version is still to be fetched.
    package var isOpen: Bool

    /// Puts a conflict together.
    package init(outcome: Outcome, mine: GameVersion, otherRevision: Revision, other: GameVersion?, isOpen: Bool) {
        self.outcome = outcome
        self.mine = mine
        self.otherRevision = otherRevision
        self.other = other
        self.isOpen = isOpen
    }

    /// Reads the conflict from a push and its answer; nil when there was none, or both states are the same bytes.
    init?(_ push: Push, _ receipt: PushReceipt, unseen: GameVersion?, device: DeviceID) {
        let other: GameVersion?
        switch receipt.settled {
        case .created, .advanced, .repeated: return nil
        case .lost:
            guard let head = receipt.head else { return nil }
            other = GameVersion(push.game, head)
            otherRevision = head.revision
            outcome = .lost
        case .won:
            guard let rival = receipt.rival else { return nil }
            other = unseen.flatMap { $0.header.revision == rival ? $0 : nil }
            otherRevision = rival
            outcome = .won
        }
        if let other, other.state == push.state { return nil }
        let header = GameHeader(
            revision: receipt.revision, saved: push.saved ?? receipt.stamp, stamp: receipt.stamp, device: device,
            schema: push.schema, outcome: receipt.settled, base: push.base, rival: receipt.rival)
        mine = GameVersion(game: push.game, header: header, state: push.state)
        self.other = other
        isOpen = other == nil
    }

    /// The other version was fetched, or is gone.
    /// - Returns: whether there is a conflict at all: both sides differ, or one is not known.
    mutating func complete(_ version: GameVersion?) -> Bool {
        other = version
        isOpen = false
        return version == nil || version?.state != mine.state
    }
}
