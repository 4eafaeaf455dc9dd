import Foundation
import Synchronization
import Wire

/// The bytes of a game's state that were no JSON any more when they were read, kept as they were.
///
/// The server's copy takes their place as soon as there is a connection. Of a save that the server does not have there is no
/// copy: its row stays as it is, and can be deleted.
public struct DamagedState: Hashable, Sendable {
    /// The game's type.
    public let collection: String
    /// Which game of that type.
    public let id: String
    /// When the damage was met.
    public let found: Date
    /// What was stored.
    public let bytes: Data
}

extension GameStore {
    /// What was kept of damaged states, the latest first. See ``DamagedState``.
    public func damagedStates() throws -> [DamagedState] {
        try read { reader in
            var states: [DamagedState] = []
            try reader.connection.rows(
                "SELECT collection, id, found, state FROM damaged ORDER BY found DESC, collection, id"
            ) {
                states.append(
                    DamagedState(
                        collection: $0.text(0) ?? "", id: $0.text(1) ?? "",
                        found: Date(timeIntervalSince1970: Double($0.integer(2)) / 1_000_000),
                        bytes: Data($0.bytes(3) ?? [])))
            }
            return states
        }
    }

    /// Keeps aside what was found damaged while reading, and has it fetched again.
    func keepDamagedAside() {
        let keys = damagedKeys.take()
        guard !keys.isEmpty else { return }
        do {
            let isToFetch = try syncing { tables in
                var isToFetch = false
                for key in keys where try tables.keepAsideIfDamaged(key, at: clock()) { isToFetch = true }
                return isToFetch
            }
            if isToFetch { savedHook.withLock { $0?.notify }?() }
        } catch {
            // The next reading meets it again.
        }
    }
}

/// Games whose states were found damaged and are not dealt with.
final class DamagedKeys: Sendable {
    private let keys = Mutex<Set<GameKey>>([])

    func note(_ key: GameKey) { keys.withLock { _ = $0.insert(key) } }

    func take() -> Set<GameKey> {
        keys.withLock { keys in
            defer { keys = [] }
            return keys
        }
    }
}
