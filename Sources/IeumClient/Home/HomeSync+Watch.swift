import Foundation
import Wire

extension HomeSync {
    /// What happens besides changes while they are watched.
    package enum WatchEvent: Hashable, Sendable {
        /// It watches from this revision on.
        case watching(since: Revision)
        /// The server was restored: everything is handed out anew.
        case startedOver
        /// The connection is gone, or could not be made; the next try is after this time.
        case interrupted(ClientError, retryIn: Duration)
        /// The store is kept by another process, or its disk is full; the next try is after this time.
        case storageFailed(StoreError, retryIn: Duration)
    }

    /// What watching ended by.
    package enum WatchEnd: Hashable, Sendable {
        /// The one change that was waited for came.
        case changed
        /// The time is over.
        case timedOut
    }

    /// Where watching stands.
    private struct Place {
        /// Up to where changes were handed out.
        var cursor: Revision
        /// The epoch that the cursor belongs to.
        var epoch: UUID?
        /// Whether the engine was heard since it connected.
        var isConnected = false
        /// Whether the engine ever connected.
        var wasConnected = false
        /// Until when the engine is to be heard for the first time.
        var firstContact: ContinuousClock.Instant
    }

    /// Hands out the games that change, until told to stop; comes back after the connection broke.
    ///
    /// It begins with what a pull would bring, and leaves the place of the next pull where it is; nothing counts as seen.
    /// - Parameters:
    ///   - since: where to start; nil: where the home's last pull ended.
    ///   - isOnce: whether to end after the first change.
    ///   - deadline: when to end; nil: never.
    ///   - tell: is told what happens besides changes.
    /// - Throws: ``HomeError``, ``StoreError``; ``ClientError`` that a retry cannot mend; what `handOut` throws.
    package func watch(
        since: Revision?, isOnce: Bool = false, deadline: ContinuousClock.Instant? = nil,
        tell: (WatchEvent) -> Void, _ handOut: ([GameVersion]) throws -> Void
    ) throws -> WatchEnd {
        var place = Place(
            cursor: try since ?? home.seen().cursor, epoch: try home.seen().epoch, firstContact: .now + contactPatience)
        while let report = reports.next(until: end(deadline, place)) {
            place.firstContact = .now + contactPatience
            switch report {
            case .worked, .synced: continue
            case .caughtUp:
                try arrive(&place, isGiven: since != nil, tell)
                if try handOutChanges(&place, handOut), isOnce { return .changed }
            case .interrupted(let error, let wait):
                place.isConnected = false
                // There is no use in a try after the end; a watch that never came about says why.
                guard error.isRetryable, !isOver(after: wait, deadline) else { throw error }
                tell(.interrupted(error, retryIn: wait))
            case .storageFailed(let error, let wait):
                place.isConnected = false
                guard let wait, let error = error as? StoreError, error.kind == .busy || error.kind == .diskFull,
                    !isOver(after: wait, deadline)
                else { throw error }
                tell(.storageFailed(error, retryIn: wait))
            case .signedOut(let reason, let error): throw signOut(reason, error)
            }
        }
        guard place.wasConnected else { throw ClientError.timedOut(after: settings.patience) }
        return .timedOut
    }

    private var contactPatience: Duration { settings.connecting + settings.patience }

    /// Before the first contact the end has time: what there is then is handed out, however short the time was.
    private func end(_ deadline: ContinuousClock.Instant?, _ place: Place) -> ContinuousClock.Instant? {
        guard let deadline, !place.wasConnected else { return deadline }
        return max(deadline, place.firstContact)
    }

    private func isOver(after wait: Duration, _ deadline: ContinuousClock.Instant?) -> Bool {
        deadline.map { .now + wait >= $0 } ?? false
    }

    /// The engine has all that the server has. Begins anew where the place means nothing any more.
    private func arrive(_ place: inout Place, isGiven: Bool, _ tell: (WatchEvent) -> Void) throws {
        let feed = try store.feed()
        _ = try meetEpoch {}
        if let known = place.epoch, known != feed.epoch, place.cursor > 0 {
            place.cursor = 0
            tell(.startedOver)
        }
        place.epoch = feed.epoch
        if place.cursor > feed.last {
            guard !isGiven else { throw ClientError.server(.cursorAhead(revision: feed.last)) }
            place.cursor = 0
            tell(.startedOver)
        }
        guard !place.isConnected else { return }
        (place.isConnected, place.wasConnected) = (true, true)
        tell(.watching(since: place.cursor))
    }

    /// - Returns: whether there were any.
    private func handOutChanges(_ place: inout Place, _ handOut: ([GameVersion]) throws -> Void) throws -> Bool {
        var hasChanged = false
        var hasMore = true
        while hasMore {
            let page: ChangePage
            do {
                page = try self.page(since: place.cursor, in: place.epoch)
            } catch let error as ClientError where error.isRetryable {
                // Something of it is on the server alone, or another process met a new epoch first. The engine comes back,
                // and this with it.
                return hasChanged
            }
            if !page.games.isEmpty { try handOut(page.games) }
            hasChanged = hasChanged || !page.games.isEmpty
            (place.cursor, hasMore) = (page.cursor, page.hasMore)
        }
        return hasChanged
    }
}
