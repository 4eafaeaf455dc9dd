import Foundation
import Wire

extension SyncEngine {
    /// Makes an engine that keeps a store in step with a server, and starts it.
    /// - Parameters:
    ///   - store: the store; one engine at a time works on it.
    ///   - server: the server's address, e.g. `games.example.org:7878`.
    ///   - token: what the server gave this device when it was registered or linked.
    /// - Throws: ``SyncError`` when the address or the token is not one.
    public convenience init(store: GameStore, server: String, token: String) throws(SyncError) {
        try self.init(storage: store, server: server, token: token)
    }
}

/// The engine's side of a store: each call is one transaction of the store's own connection, so that what a pull changes
/// reaches observers as a local save does.
extension GameStore: SyncStorage {
    package func whenSaved(_ notify: (@Sendable () -> Void)?) {
        savedHook.withLock { $0 = notify }
    }

    package func syncPoint() throws -> SyncPoint { try syncing { try $0.syncPoint() } }

    package func meet(_ signIn: SignIn, epoch: UUID, clockOffset: Int64) throws -> SyncPoint {
        try syncing { try $0.meet(signIn, epoch: epoch, clockOffset: clockOffset) }
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
        savedHook.withLock { $0 }?()
    }

    /// All games, the deleted ones among them.
    package func heldGames() throws -> [GameKey: HeldGame] {
        try syncing { tables in
            var games: [GameKey: HeldGame] = [:]
            for key in try tables.keys("SELECT collection, id FROM games") { games[key] = try tables.read(key) }
            return games
        }
    }

    private func syncing<Value>(_ body: (SyncTables) throws -> Value) throws -> Value {
        try write { transaction in
            let tables = SyncTables(connection: transaction.connection, timestamp: GameStore.timestamp(ofState:))
            let value = try body(tables)
            for collection in tables.changed { transaction.noteChange(of: collection) }
            return value
        }
    }
}
