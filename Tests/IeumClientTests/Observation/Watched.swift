import Synchronization

/// A value that a test changes from any thread, and a way to wait until it meets a condition.
final class Watched<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        var waiters: [(isMet: @Sendable (Value) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state: Mutex<State>

    init(_ value: Value) { state = Mutex(State(value: value)) }

    var value: Value { state.withLock { $0.value } }

    func change(_ body: (inout Value) -> Void) {
        let met = state.withLock { state in
            body(&state.value)
            let value = state.value
            let met = state.waiters.filter { $0.isMet(value) }
            state.waiters.removeAll { $0.isMet(value) }
            return met
        }
        for waiter in met { waiter.continuation.resume() }
    }

    func wait(until isMet: @escaping @Sendable (Value) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isNow = state.withLock { state in
                    if Task.isCancelled || isMet(state.value) { return true }
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
}
