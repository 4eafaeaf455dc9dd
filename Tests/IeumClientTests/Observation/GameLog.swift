@testable import IeumClient

/// What an observer of a store was told, and a way to wait for more of it.
final class GameLog<Change: Sendable>: Sendable {
    private let state = Watched<[Change]>([])

    var calls: [Change] { state.value }

    @Sendable func receive(_ change: Change) { state.change { $0.append(change) } }

    func wait(until isMet: @escaping @Sendable ([Change]) -> Bool) async { await state.wait(until: isMet) }

    func wait(for count: Int) async { await wait { $0.count >= count } }
}

extension GameLog {
    /// The collection of the last call.
    func last<Game>() -> [Game]? where Change == CollectionChange<Game> { calls.last?.elements }
}
