import Synchronization
import Wire

/// Where an engine's thread and the app's tasks meet.
final class SyncHub: Sendable {
    private struct State {
        var status = SyncStatus.offline
        var trouble: SyncError?
        var nextID = 0
        var statusStreams: [Int: AsyncStream<SyncStatus>.Continuation] = [:]
        var eventSignals: [Int: AsyncStream<Void>.Continuation] = [:]
        var signOuts: [SyncSignOut] = []
        var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
        var queries: [Int: CheckedContinuation<[ServerLine], any Error>] = [:]
        var lastEvent: Int64 = 0
        var isOver = false
    }

    private let state = Mutex(State())

    var status: SyncStatus { state.withLock { $0.status } }

    var trouble: SyncError? { state.withLock { $0.trouble } }

    // MARK: From the thread

    func tell(_ status: SyncStatus) {
        let streams = state.withLock { state in
            state.status = status
            return Array(state.statusStreams.values)
        }
        for stream in streams { stream.yield(status) }
    }

    func noticed(_ trouble: SyncError?) {
        state.withLock { $0.trouble = trouble }
    }

    func tellSignedOut(_ reason: SyncSignOut) {
        signal { $0.signOuts.append(reason) }
    }

    func eventsAreThere(upTo last: Int64) {
        guard last > state.withLock({ $0.lastEvent }) else { return }
        signal { $0.lastEvent = last }
    }

    func answer(_ id: SyncCore.QueryID, _ result: Result<[ServerLine], ClientError>) {
        let query = state.withLock { $0.queries.removeValue(forKey: id) }
        query?.resume(with: result.mapError { SyncError($0) as any Error })
    }

    func finish(_ id: SyncCore.WaiterID, _ failure: SyncCore.WaitFailure?) {
        let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
        switch failure {
        case nil: waiter?.resume()
        case .stopped: waiter?.resume(throwing: SyncError.stopped)
        case .signedOut: waiter?.resume(throwing: SyncError.signedOut)
        case .otherPlayer: waiter?.resume(throwing: SyncError.otherPlayer)
        case .storage(let reason): waiter?.resume(throwing: SyncError.storage(reason))
        }
    }

    /// The engine is gone: all sequences end.
    func end() {
        let ended = state.withLock { state in
            defer { state = State(isOver: true) }
            return state
        }
        for stream in ended.statusStreams.values { stream.finish() }
        for stream in ended.eventSignals.values { stream.finish() }
        for waiter in ended.waiters.values { waiter.resume(throwing: SyncError.stopped) }
        for query in ended.queries.values { query.resume(throwing: SyncError.stopped) }
    }

    private func signal(_ change: (inout State) -> Void) {
        let signals = state.withLock { state in
            change(&state)
            return Array(state.eventSignals.values)
        }
        for signal in signals { signal.yield() }
    }

    // MARK: From the app

    /// The status now and every later one; of those that a slow reader misses, the last.
    func statuses() -> AsyncStream<SyncStatus> {
        let (stream, continuation) = AsyncStream.makeStream(of: SyncStatus.self, bufferingPolicy: .bufferingNewest(1))
        add(continuation, \.statusStreams) { continuation.yield($0.status) }
        return stream
    }

    /// A signal now, and whenever there may be events.
    func eventSignals() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        add(continuation, \.eventSignals) { _ in continuation.yield() }
        return stream
    }

    func takeSignOut() -> SyncSignOut? {
        state.withLock { $0.signOuts.isEmpty ? nil : $0.signOuts.removeFirst() }
    }

    private func add<Element: Sendable>(
        _ continuation: AsyncStream<Element>.Continuation,
        _ place: WritableKeyPath<State, [Int: AsyncStream<Element>.Continuation]> & Sendable, _ begin: (State) -> Void
    ) {
        let id = state.withLock { state -> Int? in
            guard !state.isOver else { return nil }
            state.nextID += 1
            state[keyPath: place][state.nextID] = continuation
            begin(state)
            return state.nextID
        }
        guard let id else { return continuation.finish() }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0[keyPath: place].removeValue(forKey: id) }
        }
    }

    /// Waits for what is begun with an id; ``finish(_:_:)`` ends it.
    func wait(begin: (Int) -> Void, cancel: @escaping @Sendable (Int) -> Void) async throws {
        let id = nextID()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isOver = state.withLock { state in
                    if !state.isOver { state.waiters[id] = continuation }
                    return state.isOver
                }
                if isOver { return continuation.resume(throwing: SyncError.stopped) }
                begin(id)
                if Task.isCancelled { cancelWait(id) }
            }
        } onCancel: {
            cancel(id)
            cancelWait(id)
        }
    }

    private func cancelWait(_ id: Int) {
        state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
    }

    /// Asks something with an id; ``answer(_:_:)`` ends it.
    func ask(begin: (Int) -> Void) async throws -> [ServerLine] {
        let id = nextID()
        return try await withCheckedThrowingContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.isOver { state.queries[id] = continuation }
                return state.isOver
            }
            if isOver { return continuation.resume(throwing: SyncError.stopped) }
            begin(id)
        }
    }

    private func nextID() -> Int {
        state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
    }
}
