import Foundation
import Wire

extension SyncEngine {
    /// Makes an engine that keeps a store in step with a server, and starts it.
    /// - Parameters:
    ///   - store: the store; one engine at a time works on it.
    ///   - server: the server's address, e.g. `games.example.org:4386`. It is spoken to with TLS, unless it is this machine
    ///     (`localhost`, `127.0.0.1`, `[::1]`). `tls://` or `plain://` before the address says it outright; plainly, everybody
    ///     on the way reads the token and the games.
    ///   - token: what the server gave this device when it was registered or linked.
    ///   - trust: what makes the server's certificate a good one.
    ///   - certificate: this device's own, for a server that wants one.
    /// - Throws: ``SyncError`` when the address or the token is not one.
    public convenience init(
        store: GameStore, server: String, token: String, trust: ServerTrust = .system,
        certificate: ClientCertificate? = nil
    ) throws(SyncError) {
        try self.init(storage: store, server: server, token: token, trust: trust, certificate: certificate)
    }
}

/// Whom to call after each local save.
struct SavedHook: Sendable {
    /// Who set it: an engine that goes must not take its successor's away.
    let owner: ObjectIdentifier
    let notify: @Sendable () -> Void
}

extension GameStore {
    /// Gives all games in this store to another player, the one whose token this is: an engine with that token brings them
    /// to that player's account as new ones, or in conflict with what the account has under the same ids.
    ///
    /// For a player whose account is gone, e.g. because the server was restored from a backup older than the account. It is
    /// never done by itself: an engine with another player's token is refused (``SyncSignOut/otherPlayer``), so that nobody's
    /// games reach somebody else's account by a log-in. The former player's account keeps what it has; deletions are
    /// not given. Release the engine before.
    /// - Returns: whether the games were another player's; false: there was nothing to do.
    /// - Throws: ``SyncError/invalidToken``; ``StoreError`` `misuse` while an engine works on the store.
    @discardableResult
    public func giveGames(toPlayerOf token: String) throws -> Bool {
        guard let token = Token(token) else { throw SyncError.invalidToken }
        guard savedHook.withLock({ $0 == nil }) else {
            throw StoreError(
                .misuse, "the games were to be given away while an engine works on the store",
                hint: "Release the engine before.")
        }
        return try syncing { try $0.give(to: token.player) }
    }
}

/// The engine's side of a store: each call is one transaction of the store's own connection, so that what a pull changes
/// reaches observers as a local save does.
extension GameStore: SyncStorage {
    package func whenSaved(for owner: AnyObject, _ notify: (@Sendable () -> Void)?) {
        let owner = ObjectIdentifier(owner)
        savedHook.withLock { hook in
            if let notify { hook = SavedHook(owner: owner, notify: notify) } else if hook?.owner == owner { hook = nil }
        }
    }

    package func syncPoint() throws -> SyncPoint { try syncing { try $0.syncPoint() } }

    package func meet(
        _ signIn: SignIn, epoch: UUID, clockOffset: Int64, offersRefused: Bool
    ) throws -> SyncPoint {
        try syncing { try $0.meet(signIn, epoch: epoch, clockOffset: clockOffset, offersRefused: offersRefused) }
    }

    package func unanswered() throws -> [Push] { try syncing { try $0.unanswered() } }

    package func takeOutgoing(limit: Int, bytes: Int) throws -> [Push] {
        try syncing { try $0.takeOutgoing(limit: limit, bytes: bytes) }
    }

    package func acknowledge(_ answers: [PushAnswer]) throws -> SyncPoint {
        try syncing { try $0.acknowledge(answers) }
    }

    package func refuse(_ push: Push, _ error: WireError) throws -> SyncPoint {
        try syncing { try $0.refuse(push, error) }
    }

    package func apply(_ page: ChangePage, since: Revision) throws -> SyncPoint {
        try syncing { try $0.apply(page, since: since) }
    }

    package func startOver(epoch: UUID) throws -> SyncPoint { try syncing { try $0.startOver(epoch: epoch) } }

    package func errands(limit: Int) throws -> [SyncErrand] { try syncing { try $0.errands(limit: limit) } }

    package func settle(_ errand: SyncErrand, _ result: SyncErrand.Result) throws -> SyncPoint {
        try syncing { try $0.settle(errand, result) }
    }

    package func events(limit: Int) throws -> [StoredSyncEvent] { try syncing { try $0.events(limit: limit) } }

    package func removeEvent(_ id: Int64) throws { try syncing { try $0.removeEvent(id) } }

    package func heldGame(_ key: GameKey) throws -> HeldGame? { try syncing { try $0.read(key) } }

    package func restore(_ key: GameKey, state: [UInt8]?, schema: Int32) throws {
        try syncing { try $0.edit(key, state: state, schema: schema, wall: clock()) }
        savedHook.withLock { $0?.notify }?()
    }

    /// All games, the deleted ones among them.
    package func heldGames() throws -> [GameKey: HeldGame] {
        try syncing { tables in
            var games: [GameKey: HeldGame] = [:]
            for key in try tables.keys("SELECT collection, id FROM games") { games[key] = try tables.read(key) }
            return games
        }
    }

    func syncing<Value>(_ body: (SyncTables) throws -> Value) throws -> Value {
        try write { transaction in
            let tables = SyncTables(
                connection: transaction.connection, timestamp: GameStore.timestamp(ofState:),
                nextChange: { try transaction.nextChange() })
            let value = try body(tables)
            for collection in tables.changed { transaction.noteChange(of: collection) }
            return value
        }
    }
}
