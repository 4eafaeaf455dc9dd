import Dispatch
import Foundation
import Synchronization
import Wire

/// A home's store and the engine that keeps it in step with the server, for a program that waits on its one thread.
///
/// What the store holds is the library's affair. What of it was handed out to the user is remembered in the home: see
/// ``Seen``. Another process of the home may do the same at the same time.
package final class HomeSync {
    /// Where the device keeps who it is and what it saw.
    package let home: DeviceHome
    /// Who it is.
    package let identity: Identity
    /// Its copy of its player's games.
    package let store: GameStore
    /// How the copy stood before the engine began.
    package let start: CopyState

    let reports = SyncReports()
    let settings: SyncSettings
    private let engine: SyncEngine
    /// How many games are handed out at a time.
    static let pageSize = 100

    /// Something about the server that changes what is handed out.
    package enum Restart: Hashable, Sendable {
        /// Its database began a new life: what it lost of the copy here is offered to it.
        case newEpoch
        /// It does not know the remembered cursor.
        case cursorAhead
    }

    /// Opens the home's store and starts an engine on it.
    /// - Throws: ``HomeError``, ``StoreError``, ``SyncError``.
    package convenience init(home: DeviceHome, patience: ServerConnection.Patience = .init()) throws {
        var settings = SyncSettings()
        settings.connecting = patience.connecting
        settings.patience = patience.answer
        try self.init(home: home, settings: settings)
    }

    init(home: DeviceHome, settings: SyncSettings) throws {
        self.home = home
        self.settings = settings
        identity = try home.identity()
        store = try home.openStore(of: identity)
        try store.prepareListing()
        start = try store.copyState()
        engine = try SyncEngine(
            storage: store, home: home, identity: identity, settings: settings,
            report: { [reports] in reports.put($0) })
    }

    // MARK: Bringing it up to date

    /// Waits until the server has acknowledged, or refused, what was saved here, and all that it has is here.
    /// - Throws: the first trouble that the engine meets: ``ClientError``, ``StoreError``, ``HomeError``. What was done until
    ///   then stays done.
    package func bringUpToDate() throws {
        // Each answer has its own time. That nothing at all happens is for the case that another process of this home took
        // over what this one waits for, and went.
        while let report = reports.next(until: .now + settings.connecting + settings.patience) {
            switch report {
            case .synced: return
            case .worked, .caughtUp: continue
            case .interrupted(let error, _): throw error
            case .storageFailed(let error, _): throw error
            case .signedOut(let reason, let error): throw signOut(reason, error)
            }
        }
        throw ClientError.timedOut(after: settings.patience)
    }

    /// How many games there are whose save the server took since the start; one that it does not take is none of them.
    package func sentGames() throws -> Int {
        let now = try store.copyState()
        return max(0, start.unsent + start.refused - now.unsent - now.refused)
    }

    /// What came of the saves that were sent since the start, as far as an app is to be told of it. It is told later, too.
    package func events() throws -> [StoredSyncEvent] {
        guard try store.copyState().lastEvent > start.lastEvent else { return [] }
        return try store.events(limit: 1_000).filter { $0.id > start.lastEvent }
    }

    func signOut(_ reason: SyncSignOut, _ error: ClientError?) -> any Error {
        guard reason != .otherPlayer else { return home.otherPlayersStore(nil) }
        return error ?? ClientError.server(WireError(.notSignedIn, "the server does not let this device in"))
    }

    // MARK: Handing it out

    /// Hands out the games that changed, page by page, and remembers how far it came after each page was handed out.
    /// - Parameters:
    ///   - since: where to start; nil: where the last pull ended. From further on than that nothing is remembered, since
    ///     the changes in between were not handed out.
    ///   - givesStates: whether `handOut` passes the states on. If not, only deletions count as seen.
    ///   - restarting: is told when what was remembered means nothing any more, and it starts from 0.
    /// - Returns: the new cursor, and how many games were handed out.
    /// - Throws: ``ClientError`` `cursor-ahead` for a start beyond the end; what `handOut` throws.
    package func handOut(
        since: Revision?, givesStates: Bool, restarting: (Restart) -> Void = { _ in },
        _ handOut: ([GameVersion]) throws -> Void
    ) throws -> (cursor: Revision, games: Int) {
        let epoch = try meetEpoch { restarting(.newEpoch) }
        // Before the store is looked at: another process may move both.
        let remembered = try home.seen().cursor
        var cursor = since ?? remembered
        let last = try store.feed().last
        if cursor > last {
            guard since == nil else { throw ClientError.server(.cursorAhead(revision: last)) }
            restarting(.cursorAhead)
            try home.updateSeen { $0.startOver() }
            cursor = 0
        }
        let isContiguous = cursor <= remembered
        var count = 0
        var hasMore = true
        while hasMore {
            let page = try page(since: cursor, in: epoch)
            try handOut(page.games)
            count += page.games.count
            (cursor, hasMore) = (page.cursor, page.hasMore)
            try home.updateSeen { seen in
                for game in page.games where givesStates || game.state == nil {
                    seen.saw(game.game, revision: game.header.revision, stamp: game.header.stamp)
                }
                if isContiguous { seen.pulled(upTo: cursor) }
            }
        }
        return (cursor, count)
    }

    /// Takes note of the server's epoch in what was seen.
    /// - Returns: the epoch of the store's revisions.
    func meetEpoch(ifNew tell: () -> Void) throws -> UUID? {
        let epoch = try store.feed().epoch
        guard let epoch, try home.seen().epoch != epoch else { return epoch }
        if try home.updateSeen({ $0.meet(epoch: epoch) }) { tell() }
        return epoch
    }

    func page(since cursor: Revision, in epoch: UUID?) throws -> ChangePage {
        let page = try store.heads(since: cursor, limit: Self.pageSize)
        guard page.epoch == epoch else {
            throw ClientError.server(.epochChanged)
        }
        let games = try page.heads.compactMap { head in
            switch head {
            case .held(let version): version
            case .replaced(let key, let revision): try fetch(key, revision)
            }
        }
        return ChangePage(games: games, cursor: page.cursor, hasMore: page.hasMore)
    }

    /// A version that only the server has.
    /// - Returns: nil when it is gone there; then a later one has taken its place.
    private func fetch(_ key: GameKey, _ revision: Revision) throws -> GameVersion? {
        let answer = Answer()
        engine.ask(.get(key, revision: revision)) { answer.come($0) }
        do throws(ClientError) {
            guard case .game(let version)? = try answer.wait().first, version.game == key else { return nil }
            return version
        } catch {
            guard case .server(let refusal) = error, refusal.code == .noSuchGame || refusal.code == .noSuchVersion
            else {
                throw error
            }
            return nil
        }
    }

    /// The answer to a question that the thread waits for.
    private final class Answer: Sendable {
        private let lines = Mutex<Result<[ServerLine], ClientError>?>(nil)
        private let isHere = DispatchSemaphore(value: 0)

        func come(_ result: Result<[ServerLine], ClientError>) {
            lines.withLock { $0 = result }
            isHere.signal()
        }

        func wait() throws(ClientError) -> [ServerLine] {
            isHere.wait()
            let result = lines.withLock { $0 }
            return try result?.get() ?? []
        }
    }
}
