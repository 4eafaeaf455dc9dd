import Synchronization

@testable import IeumClient

/// What an observer of a store was told, and a way to wait for more of it.
final class GameLog<Change: Sendable>: Sendable {
    private struct State {
        var calls: [Change] = []
        var waiters: [(isMet: @Sendable ([Change]) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var calls: [Change] { state.withLock { $0.calls } }

    @Sendable func receive(_ change: Change) {
        let met = state.withLock { state in
            state.calls.append(change)
            let calls = state.calls
            let met = state.waiters.filter { $0.isMet(calls) }
            state.waiters.removeAll { $0.isMet(calls) }
            return met
        }
        for waiter in met { waiter.continuation.resume() }
    }

    func wait(until isMet: @escaping @Sendable ([Change]) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isNow = state.withLock { state in
                    if Task.isCancelled || isMet(state.calls) { return true }
                    state.waiters.append((isMet, continuation))
                    return false
                }
                if isNow { continuation.resume() }
            }
        } onCancel: {
            // A test that is out of time goes on, and fails.
            let waiters = state.withLock { state in
                defer { state.waiters = [] }
                return state.waiters
            }
            for waiter in waiters { waiter.continuation.resume() }
        }
    }

    func wait(for count: Int) async { await wait { $0.count >= count } }
}

extension GameLog {
    /// The collection of the last call.
    func last<Game>() -> [Game]? where Change == CollectionChange<Game> { calls.last?.elements }
}
