import Dispatch
import Synchronization

/// Brings the write-ahead log into the file once nothing has been saved for a while.
///
/// By itself SQLite does so when the log has grown to 4 MB, and when the last connection is closed, which an app that is killed
/// never does: so the saves of weeks would be in the log alone, and be lost with it.
final class IdleCheckpoint: Sendable {
    private struct State {
        var last: ContinuousClock.Instant?
        var isScheduled = false
    }

    /// How long nothing must have been saved.
    private static let rest = Duration.seconds(2)
    private let state = Mutex(State())

    /// Something was written to a store.
    func committed(_ store: GameStore) {
        let isFirst = state.withLock { state in
            state.last = .now
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isFirst { schedule(store, after: Self.rest) }
    }

    private func schedule(_ store: GameStore, after wait: Duration) {
        let milliseconds = Int(wait / .milliseconds(1)) + 1
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .milliseconds(milliseconds)) {
            [weak self, weak store] in
            guard let self, let store else { return }
            let left = self.state.withLock { state -> Duration in
                let left = Self.rest - (state.last.map { .now - $0 } ?? Self.rest)
                if left <= .zero { state.isScheduled = false }
                return left
            }
            guard left <= .zero else { return self.schedule(store, after: left) }
            // One that fails, because somebody reads or writes, follows the next save.
            try? store.checkpoint()
        }
    }
}

extension GameStore {
    /// Brings what is in the write-ahead log into the file, as far as no reader needs it; waits for nobody.
    func checkpoint() throws {
        try read { reader in try reader.connection.rows("PRAGMA wal_checkpoint(PASSIVE)") { _ in } }
    }

    /// Looks through a file that was too large for that when it was opened, in the background, a while after it was opened.
    /// Damage is for the next opening to deal with.
    func inspectLater() {
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .seconds(5)) { [weak self] in
            try? self?.inspect()
        }
    }

    func inspect() throws {
        guard let url else { return }
        try read { reader in try StoreFile(path: url.path).inspect(reader.connection) }
    }
}
