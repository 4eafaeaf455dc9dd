import Foundation
import Synchronization
import Testing

@testable import IeumClient

/// A value to observe: `rank` orders it, `note` is what nobody sorts by.
struct Piece: Equatable, Sendable {
    var id: String
    var rank = 0
    var note = 0
}

/// Rows in memory with change numbers as the store keeps them, in front of the real observers.
final class RowTable: Sendable {
    struct Failure: Error, Equatable {}

    private struct State: Sendable {
        var rows: [String: (change: Int64, piece: Piece?)] = [:]
        var change: Int64 = 0
        var isBroken = false
        var readings = 0
    }

    let centre: ObservationCentre
    let collection: String
    private let state = Mutex(State())

    init(_ collection: String = "piece", centre: ObservationCentre = ObservationCentre()) {
        self.collection = collection
        self.centre = centre
    }

    /// How often the observers have read the rows.
    var readings: Int { state.withLock { $0.readings } }
    var pieces: [Piece] { state.withLock { $0.rows.values.compactMap(\.piece).sorted { $0.id < $1.id } } }

    /// Commits rows in one transaction; `nil` deletes.
    func commit(_ pieces: [(id: String, piece: Piece?)], tellingTheCentre isTold: Bool = true) {
        state.withLock { state in
            for (id, piece) in pieces {
                state.change += 1
                state.rows[id] = (state.change, piece)
            }
        }
        if isTold { centre.committed([collection]) }
    }

    func save(_ pieces: Piece...) { commit(pieces.map { ($0.id, $0) }) }
    func delete(_ ids: String...) { commit(ids.map { ($0, nil) }) }
    func breakDown() {
        state.withLock { $0.isBroken = true }
        centre.committed([collection])
    }

    /// Commits a row that an observer knows already.
    func save(_ piece: Piece, withoutNotifying token: ObservationToken, rollingBack: Bool = false) {
        let change = state.withLock { $0.change + 1 }
        token.observer.expect(id: piece.id, change: change, value: piece)
        if rollingBack {
            token.withdraw(from: change)
        } else {
            save(piece)
        }
    }

    @Sendable func read(since: Int64?) throws -> RowChanges<Piece> {
        try state.withLock { state in
            if state.isBroken { throw Failure() }
            state.readings += 1
            let rows = state.rows.filter { $0.value.change > since ?? .min }
            return RowChanges(
                rows: rows.map { RowChanges.Row(id: $0.key, change: $0.value.change, value: $0.value.piece) },
                upTo: state.change, isWhole: since == nil)
        }
    }

    func observe(
        _ query: ObservedQuery<Piece> = ObservedQuery(), on queue: DispatchQueue? = nil,
        _ callback: @escaping @Sendable (CollectionChange<Piece>) -> Void
    ) -> ObservationToken {
        centre.observe(query, in: collection, on: queue, read: read, callback)
    }
}

extension ObservedQuery<Piece> {
    static var byRank: Self { Self(isBefore: { $0.rank < $1.rank }) }
}

/// The calls of an observer, applied one by one to an array of the test's own.
final class CallLog: Sendable {
    private struct State {
        var pieces: [Piece]?
        var calls: [CollectionChange<Piece>] = []
        var faults: [String] = []
    }

    /// What a test waits for.
    struct Seen: Sendable {
        var pieces: [Piece]?
        var calls: Int
        var hasFailed: Bool
    }

    private let state = Watched(State())

    var calls: [CollectionChange<Piece>] { state.value.calls }
    var pieces: [Piece]? { state.value.pieces }
    /// What no observer may be told: a second `initial`, an update before it, indices that do not fit, a call after an error.
    var faults: [String] { state.value.faults }

    @Sendable func receive(_ change: CollectionChange<Piece>) {
        state.change { state in
            if case .error? = state.calls.last { state.faults.append("a call after the error") }
            state.calls.append(change)
            switch change {
            case .initial(let pieces):
                if state.pieces != nil { state.faults.append("a second initial") }
                state.pieces = pieces
            case .update(let pieces, let deletions, let insertions, let modifications, let modificationsNew):
                guard let old = state.pieces else {
                    state.faults.append("an update before initial")
                    break
                }
                let applied = Applied(
                    old, deletions: deletions, insertions: insertions, modifications: modifications,
                    modificationsNew: modificationsNew, from: pieces)
                state.faults += applied.faults
                if applied.rows != pieces { state.faults.append("applying \(change) to \(old) gives \(applied.rows)") }
                state.pieces = pieces
            case .error: break
            }
        }
    }

    private static func seen(_ state: borrowing State) -> Seen {
        let hasFailed = if case .error? = state.calls.last { true } else { false }
        return Seen(pieces: state.pieces, calls: state.calls.count, hasFailed: hasFailed)
    }

    /// Waits until what was seen meets a condition.
    func wait(until isMet: @escaping @Sendable (Seen) -> Bool) async {
        await state.wait { isMet(Self.seen($0)) }
    }
}

/// An array after the four lists of an update, by their definition alone.
struct Applied<Row> {
    var rows: [Row] = []
    var faults: [String] = []

    init(
        _ old: [Row], deletions: [Int], insertions: [Int], modifications: [Int], modificationsNew: [Int],
        from new: [Row]
    ) {
        for (name, list) in [
            ("deletions", deletions), ("insertions", insertions), ("modifications", modifications),
            ("modificationsNew", modificationsNew),
        ] where zip(list, list.dropFirst()).contains(where: { $0 >= $1 }) {
            faults.append("\(name) do not rise: \(list)")
        }
        guard deletions.allSatisfy(old.indices.contains), modifications.allSatisfy(old.indices.contains),
            insertions.allSatisfy(new.indices.contains), modificationsNew.allSatisfy(new.indices.contains),
            modifications.count == modificationsNew.count
        else {
            faults.append("indices outside the collections")
            return
        }
        let gone = Set(deletions)
        rows = old.indices.filter { !gone.contains($0) }.map { old[$0] }
        for place in insertions {
            guard place <= rows.count else {
                faults.append("insertion \(place) into \(rows.count) rows")
                return
            }
            rows.insert(new[place], at: place)
        }
        if !gone.isDisjoint(with: modifications) { faults.append("a row both deleted and modified") }
        for place in modificationsNew where rows.indices.contains(place) { rows[place] = new[place] }
    }
}
