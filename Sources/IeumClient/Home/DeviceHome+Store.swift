import Glibc
import Wire

/// The device's copy of its player's games: a ``GameStore`` in the home, which ``SyncEngine`` keeps in step with the server.
///
/// The copy is the library's: what it holds comes from the server, and from who saves games here. What of it was handed out to
/// the user's files is another matter, see ``Seen``. Every process of the home may have it open at the same time.
extension DeviceHome {
    /// The names of the store's file and of what is kept beside it.
    static let storeFiles = [
        "games.sqlite", "games.sqlite-wal", "games.sqlite-shm", "games.sqlite-mark", "games.sqlite-damaged",
    ]

    /// Where the store is, whether there is one or not.
    package var storePath: String { folder.path(of: Self.storeFiles[0]) }

    /// Opens the store, or makes it, readable for its owner alone.
    ///
    /// A damaged file is set aside in the home, and a new one begun, which syncing fills again: see ``GameStore/damagedCopy``.
    /// - Parameters:
    ///   - identity: whose games they are; nil: nobody's yet, or whoever's they were.
    ///   - schemaVersion: the schema of the app that saves games here; nil: whichever it is, for a program that passes states
    ///     on as they are.
    ///   - busyMilliseconds: how long to wait for another process that keeps the file.
    /// - Throws: ``HomeError`` `otherPlayer` when the games in it are another player's, `damaged` when it is no file, and
    ///   `system`; ``StoreError``, e.g. `foreign` for a file that is no store, or `busy`.
    package func openStore(
        of identity: Identity?, schemaVersion: Int? = nil, busyMilliseconds: Int32 = 10_000
    ) throws -> GameStore {
        try folder.create()
        try folder.restrict(Self.storeFiles)
        let store = try GameStore(path: storePath, schemaVersion: schemaVersion, busyMilliseconds: busyMilliseconds)
        if let identity, let owner = try store.owner(), owner != identity.player { throw otherPlayersStore(owner) }
        return store
    }

    /// Opens the store if there is one; makes none.
    /// - Throws: what ``openStore(of:schemaVersion:busyMilliseconds:)`` throws.
    package func openStoreIfThere(of identity: Identity, busyMilliseconds: Int32 = 10_000) throws -> GameStore? {
        guard access(storePath, F_OK) == 0 else { return nil }
        return try openStore(of: identity, busyMilliseconds: busyMilliseconds)
    }

    /// The games here are not this device's player's.
    func otherPlayersStore(_ owner: PlayerID?) -> HomeError {
        HomeError(
            .otherPlayer, "\(storePath) holds the games of another player" + (owner.map { " (\($0))" } ?? ""),
            hint: "It was left as it is. Move it aside: mv \(storePath.shellQuoted) \("\(storePath).other".shellQuoted)"
        )
    }
}

extension SyncEngine {
    /// Makes an engine that keeps a home's store in step with the home's server, and starts it.
    package convenience init(store: GameStore, of home: DeviceHome, as identity: Identity) throws(SyncError) {
        try self.init(storage: store, home: home, identity: identity)
    }
}
