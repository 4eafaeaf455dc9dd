import Foundation

/// A value that several threads of a test change, and wait for.
///
/// `@unchecked`: the condition guards the value.
final class Shared<Value: Sendable>: @unchecked Sendable {
    private let condition = NSCondition()
    private var value: Value

    init(_ value: Value) { self.value = value }

    /// What it is now.
    var current: Value { change { $0 } }

    /// Changes the value, and wakes who waits for it.
    func change<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        condition.lock()
        defer {
            condition.broadcast()
            condition.unlock()
        }
        return try body(&value)
    }

    /// Waits until the value is as it should be, and gives it; throws when that takes longer than `seconds`.
    @discardableResult
    func wait(_ seconds: Double, for purpose: String, until isReached: (Value) -> Bool) throws -> Value {
        let deadline = Date().addingTimeInterval(seconds)
        condition.lock()
        defer { condition.unlock() }
        while !isReached(value) {
            guard condition.wait(until: deadline) || isReached(value) else {
                throw WaitError(description: "\(purpose): not within \(seconds) s; it is \(value)")
            }
        }
        return value
    }
}

/// Something that a test waited for did not come.
struct WaitError: Error, CustomStringConvertible {
    let description: String
}

/// Threads of a test's own. Tests and tasks share a few threads that may all be waiting; these always run.
final class Workers: Sendable {
    private struct State {
        var running = 0
        var errors: [any Error] = []
    }

    private let state = Shared(State())

    /// Starts a body on a new thread.
    func start(_ body: @escaping @Sendable () throws -> Void) {
        state.change { $0.running += 1 }
        Thread.detachNewThread { [state] in
            let result = Result { try body() }
            state.change {
                if case .failure(let error) = result { $0.errors.append(error) }
                $0.running -= 1
            }
        }
    }

    /// Whether one of them has not ended.
    var areRunning: Bool { state.current.running > 0 }

    /// Waits for all of them, and throws the first error of any.
    func join(within seconds: Double = 120) throws {
        let end = try state.wait(seconds, for: "the test's threads end") { $0.running == 0 }
        if let error = end.errors.first { throw error }
    }
}

/// Looks again and again until something outside this process holds; throws when that takes longer than `seconds`.
func eventually(_ seconds: Double, _ purpose: String, _ isReached: () throws -> Bool) throws {
    let deadline = Date().addingTimeInterval(seconds)
    while try !isReached() {
        guard Date() < deadline else { throw WaitError(description: "\(purpose): not within \(seconds) s") }
        usleep(10_000)
    }
}

/// Runs a body that waits for long on a thread of its own, so that other tests go on meanwhile.
func aside<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}
