import Dispatch
import Foundation
import Synchronization

/// A store's centre of observation, made when somebody observes for the first time.
final class StoreObservers: Sendable {
    private let made = Mutex<ObservationCentre?>(nil)

    /// The centre; it hears of the store's commits, and looks for those of other processes while there are observers.
    func centre(of store: GameStore) -> ObservationCentre {
        made.withLock { made in
            if let made { return made }
            let centre = Self.makeCentre(for: store)
            store.whenCommitted { [weak centre] commit in centre?.committed(commit.collections) }
            made = centre
            return centre
        }
    }

    private static func makeCentre(for store: GameStore) -> ObservationCentre {
        // Nobody else can write what is in memory.
        guard store.url != nil else { return ObservationCentre() }
        return ObservationCentre { [weak store] in
            guard let store else { return 0 }
            try store.requireFile()
            return try store.foreignChanges()
        }
    }
}

extension GameStore {
    /// What observers hold of a row: a value, or why there is none.
    typealias Readable<Game: Persistable> = Result<Game, StoreError>

    /// Reads what changed in a collection after a change number, as one moment had it.
    func changes<Game: Persistable>(of type: Game.Type, since: Int64?) throws -> RowChanges<Readable<Game>> {
        try requireFile()
        var changes = RowChanges<Readable<Game>>(rows: [], upTo: since ?? 0, isWhole: since == nil)
        var games: [StoredGame] = []
        try read { reader in
            // SQLite would rather go through the whole collection.
            let source = since == nil ? "games WHERE" : "games INDEXED BY games_changed WHERE span >= ?3 AND"
            try reader.connection.rows(
                "SELECT id, state, schema, change FROM \(source) collection = ?1 AND change > ?2",
                [.text(Game.collection), .integer(since ?? -1)]
                    + (since.map { [.integer(StoreFile.span(of: $0))] } ?? [])
            ) { row in
                let change = row.integer(3)
                changes.upTo = max(changes.upTo, change)
                guard let state = row.bytes(1) else {
                    changes.rows.append(RowChanges.Row(id: row.text(0) ?? "", change: change, value: nil))
                    return
                }
                games.append(
                    StoredGame(
                        id: row.text(0) ?? "", state: state, schema: Int32(clamping: row.integer(2)), change: change))
            }
        }
        // Decoded when the snapshot is let go.
        for (game, value) in zip(games, readable(Game.self, games)) {
            changes.rows.append(RowChanges.Row(id: game.id, change: game.change, value: value))
        }
        return changes
    }

    /// Decodes games; many at a time, on all cores.
    private func readable<Game: Persistable>(_ type: Game.Type, _ games: [StoredGame]) -> [Readable<Game>] {
        let share = 64
        guard games.count > share else { return games.map { readable($0) } }
        let shares = (games.count + share - 1) / share
        let decoded = Mutex<[Int: [Readable<Game>]]>([:])
        DispatchQueue.concurrentPerform(iterations: shares) { index in
            let part: [Readable<Game>] = games[(index * share)..<min((index + 1) * share, games.count)].map {
                readable($0)
            }
            decoded.withLock { $0[index] = part }
        }
        return decoded.withLock { decoded in (0..<shares).flatMap { decoded[$0] ?? [] } }
    }

    func readable<Game: Persistable>(_ game: StoredGame) -> Readable<Game> {
        do throws(StoreError) {
            return .success(try decode(Game.self, game))
        } catch {
            return .failure(error)
        }
    }

    /// A file that was removed can be read on, for who has it open; but nobody else will see what is written there.
    func requireFile() throws(StoreError) {
        guard let url, access(url.path, F_OK) != 0 else { return }
        throw Self.fileIsGone(url)
    }

    static func fileIsGone(_ url: URL) -> StoreError {
        StoreError(
            .cannotOpen, "\(url.path) is gone", hint: "The file was removed or renamed while the store was open.")
    }
}
