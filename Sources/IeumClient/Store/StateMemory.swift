import Synchronization
import Wire

/// What is known of the states that were saved or read last, by the change that made them, so that a save needs no decoding
/// of what it replaces.
final class StateMemory: Sendable {
    struct Entry: Sendable {
        /// The change that made the state.
        var change: Int64
        /// The type that it was saved as: another type leaves something else of the same state.
        var type: ObjectIdentifier
        /// The state, as it is stored.
        var state: [UInt8]
        /// What its type leaves of it; nil: all.
        var known: [UInt8]?
    }

    private static let maxEntries = 16
    private static let maxBytes = 65_536
    private let entries = Mutex<[GameKey: Entry]>([:])

    /// What is known of a state that this change made, of a value of this type.
    subscript(key: GameKey, change: Int64, type: Any.Type) -> Entry? {
        entries.withLock { entries in
            guard let entry = entries[key], entry.change == change, entry.type == ObjectIdentifier(type) else {
                return nil
            }
            return entry
        }
    }

    /// Takes note of a state. One whose transaction fails does no harm as long as ``forgetAll()`` follows.
    func remember(_ key: GameKey, _ entry: Entry) {
        entries.withLock { entries in
            guard entry.state.count <= Self.maxBytes else {
                entries[key] = nil
                return
            }
            if entries[key] == nil, entries.count >= Self.maxEntries, let other = entries.keys.first {
                entries[other] = nil
            }
            entries[key] = entry
        }
    }

    /// Forgets all, after a transaction that was not committed: its change numbers will be given again.
    func forgetAll() {
        entries.withLock { $0 = [:] }
    }
}
