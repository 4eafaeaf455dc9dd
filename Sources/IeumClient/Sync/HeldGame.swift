import Wire

/// One game as a device holds it: what the app sees, what is known of the server, and what is under way between the two.
///
/// This value is the whole rule of syncing on the device's side; a ``SyncStorage`` reads it, lets one event happen to it
/// and writes it back, all in one transaction. The server's side of the rule is in Documentation/conflicts.md.
package struct HeldGame: Hashable, Sendable {
    /// Which game.
    package var key: GameKey
    /// What the app sees: the JSON text, nil when the game is deleted.
    package var state: [UInt8]?
    /// The version of the state's shape.
    package var schema: Int32
    /// When the state was saved, by the clock of who saved it: with the device, its name on the server.
    package var saved: Timestamp
    /// Who saved it; nil: this device, and the server has not said so yet.
    package var device: DeviceID?
    /// The latest stamp that was heard of for this game; of a game that is synced, its head's.
    package var stamp: Timestamp?
    /// What the state was made from.
    package var base: Base
    /// How the state stands with the server.
    package var standing: Standing
    /// What was sent, or is about to be, and has no answer; then ``standing`` is `edited`.
    package var sending: Push?
    /// The latest head that came while something unsynced was in its place.
    package var unseen: GameVersion?

    /// What a state was made from.
    package enum Base: Hashable, Sendable {
        /// From nothing: the server was never heard to have this game.
        case nothing
        /// From this revision, or it is this revision.
        case revision(Revision)
        /// From a version of an earlier life of the server's database, whose numbers mean nothing now.
        case earlierEpoch
    }

    /// How a state stands with the server.
    package enum Standing: Int, Hashable, Sendable {
        /// The server has it.
        case synced = 0
        /// It was saved here, and the server has not acknowledged it.
        case edited = 1
        /// An earlier life of the server had it. It is offered unless this one turns out to have it, too.
        case unproven = 2
        /// The server does not take it. It is kept, and the next save is offered again.
        case refused = 3
    }

    /// Puts a game together.
    package init(
        key: GameKey, state: [UInt8]?, schema: Int32, saved: Timestamp, device: DeviceID? = nil,
        stamp: Timestamp? = nil, base: Base = .nothing, standing: Standing = .edited, sending: Push? = nil,
        unseen: GameVersion? = nil
    ) {
        self.key = key
        self.state = state
        self.schema = schema
        self.saved = saved
        self.device = device
        self.stamp = stamp
        self.base = base
        self.standing = standing
        self.sending = sending
        self.unseen = unseen
    }

    /// A game that a pull brought for the first time.
    package init(_ head: GameVersion) {
        self.init(
            key: head.game, state: head.state, schema: head.header.schema, saved: head.header.saved,
            device: head.header.device, stamp: head.header.stamp, base: .revision(head.header.revision),
            standing: .synced)
    }

    // MARK: Saving

    /// The `saved` of a save at a moment: after every stamp heard of for this game, and after the save that it replaces
    /// before the server has acknowledged that. No two states of a game ever get the same.
    package func nextSaved(at now: Timestamp) -> Timestamp {
        var next = now
        if let stamp { next = max(next, stamp.advanced(byMicroseconds: 1)) }
        if standing == .edited || standing == .refused { next = max(next, saved.advanced(byMicroseconds: 1)) }
        return next
    }

    /// The app saved another state; nil deletes the game.
    package mutating func edit(state: [UInt8]?, schema: Int32, at now: Timestamp) {
        saved = nextSaved(at: now)
        self.state = state
        self.schema = schema
        device = nil
        standing = .edited
    }

    /// The device's clock was found to be off, at the first contact with a server: what was saved before bears a wrong time.
    package mutating func correctClock(by microseconds: Int64) {
        guard standing == .edited, sending == nil, microseconds != 0 else { return }
        let corrected = saved.advanced(byMicroseconds: microseconds)
        saved = max(corrected, stamp?.advanced(byMicroseconds: 1) ?? corrected)
    }

    // MARK: Sending

    /// The push that offers the state, if there is one to make now; from then on it is under way.
    package mutating func takePush(as own: DeviceID) -> Push? {
        guard sending == nil, standing == .edited || (standing == .unproven && !needsLookUp(as: own)) else {
            return nil
        }
        standing = .edited
        device = nil
        let base: Revision? =
            switch base {
            case .nothing: 0
            case .revision(let revision): revision
            case .earlierEpoch: nil
            }
        let push = Push(game: key, saved: saved, base: base, schema: schema, state: state)
        sending = push
        return push
    }

    /// Whether the server's history must be looked at before this state is offered: it is another device's, and the server
    /// has another head, which may well be its successor.
    package func needsLookUp(as own: DeviceID) -> Bool {
        guard standing == .unproven, unseen != nil, let device else { return false }
        return device != own
    }

    /// The server's history was looked at.
    /// - Returns: whether the app sees something else now.
    package mutating func lookedUp(isThere: Bool) -> Bool {
        guard standing == .unproven else { return false }
        guard isThere, let head = unseen else {
            standing = .edited
            device = nil
            return false
        }
        return show(head)
    }

    // MARK: Hearing

    /// A pull brought the game's head. It never takes the place of what the server does not have.
    /// - Returns: whether the app sees something else now.
    package mutating func meet(_ head: GameVersion, as own: DeviceID) -> Bool {
        let header = head.header
        raiseStamp(header.stamp)
        if case .revision(let seen) = base, header.revision <= seen { return false }
        if let unseen, header.revision <= unseen.header.revision { return false }
        switch standing {
        case .synced: return show(head)
        case .edited, .refused: unseen = head
        case .unproven:
            guard isSame(as: head, own) else {
                unseen = head
                return false
            }
            (base, standing, device, saved) = (.revision(header.revision), .synced, header.device, header.saved)
            unseen = nil
        }
        return false
    }

    /// The server took a push.
    /// - Returns: the conflict that it met, if it met one, and whether the app sees something else now.
    package mutating func acknowledge(
        _ push: Push, _ receipt: PushReceipt, as own: DeviceID
    ) -> (conflict: PushConflict?, isChanged: Bool) {
        guard let saved = push.saved, sending?.saved == saved else { return (nil, false) }
        sending = nil
        raiseStamp(receipt.stamp)
        var head = unseen
        if let told = receipt.head {
            raiseStamp(told.stamp)
            if told.revision > head?.header.revision ?? 0 { head = GameVersion(key, told) }
        }
        let conflict = PushConflict(push, receipt, unseen: unseen, device: own)
        let isLost = receipt.settled == .lost
        // A save made meanwhile was made from what was pushed, whatever became of that.
        guard self.saved == saved, standing == .edited else {
            base = .revision(receipt.revision)
            if let known = head, !isLost, known.header.revision <= receipt.revision { head = nil }
            unseen = head
            return (conflict, false)
        }
        (base, standing, device) = (.revision(receipt.revision), .synced, own)
        unseen = nil
        guard let head, isLost || head.header.revision > receipt.revision else { return (conflict, false) }
        let isChanged = show(head)
        // What is shown is what the next save is made from; the one that lost to it counts no more.
        if isLost { stamp = head.header.stamp }
        return (conflict, isChanged)
    }

    /// The server did not take a push, and never will.
    /// - Returns: whether that is to be told; else it is mended, and the state is offered once more.
    package mutating func refuse(_ push: Push, _ error: WireError) -> Bool {
        guard let saved = push.saved, sending?.saved == saved else { return false }
        sending = nil
        let isLatest = self.saved == saved && standing == .edited
        switch error.code {
        case .baseMismatch where push.base != nil:
            base = .earlierEpoch
            return false
        case .savedReused:
            if isLatest { self.saved = saved.advanced(byMicroseconds: 1) }
            return false
        default:
            if isLatest { standing = .refused }
            return true
        }
    }

    /// The server's database began a new life: what it is known to have is to be proven anew.
    package mutating func startOver() {
        unseen = nil
        if case .revision = base {
            base = .earlierEpoch
            if standing == .synced { standing = .unproven }
        }
        if let base = sending?.base, base > 0 { sending?.base = nil }
    }

    /// The state is damaged, and the head was fetched to take its place.
    /// - Returns: whether the app sees something else now.
    package mutating func replace(with head: GameVersion) -> Bool {
        guard standing == .synced else { return false }
        if case .revision(let seen) = base, head.header.revision < seen { return false }
        return show(head)
    }

    /// A damaged state is not offered to anybody: whatever the server has takes its place.
    /// - Returns: whether that changes anything.
    package mutating func isNoLongerToBeProven() -> Bool {
        guard standing == .unproven else { return false }
        (standing, base, unseen) = (.synced, .earlierEpoch, nil)
        return true
    }

    /// What the server did not take is offered once more: it may take it now.
    package mutating func offerAgain() {
        if standing == .refused { standing = .edited }
    }

    /// The game is another player's from now on: nothing is known of what that player's account has of it.
    package mutating func give() {
        (sending, unseen, base) = (nil, nil, .earlierEpoch)
        guard state != nil else {
            // A deletion is not carried into the other account.
            standing = .synced
            return
        }
        (standing, device) = (.edited, nil)
    }

    private mutating func show(_ head: GameVersion) -> Bool {
        let isChanged = state != head.state || schema != head.header.schema
        state = head.state
        schema = head.header.schema
        saved = head.header.saved
        device = head.header.device
        raiseStamp(head.header.stamp)
        base = .revision(head.header.revision)
        standing = .synced
        unseen = nil
        return isChanged
    }

    private func isSame(as head: GameVersion, _ own: DeviceID) -> Bool {
        if head.header.saved == saved, head.header.device == device ?? own { return true }
        return head.state == state && head.header.schema == schema
    }

    private mutating func raiseStamp(_ heard: Timestamp) {
        stamp = max(stamp ?? heard, heard)
    }
}

extension GameVersion {
    /// The head that a receipt tells of.
    init(_ key: GameKey, _ head: PushReceipt.Head) {
        self.init(
            game: key,
            header: GameHeader(
                revision: head.revision, saved: head.saved, stamp: head.stamp, device: head.device, schema: head.schema),
            state: head.state)
    }
}
