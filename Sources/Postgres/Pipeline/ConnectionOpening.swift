import CLibPQ
import EventLoop

/// Drives a ``ConnectionAttempt`` by the loop's readiness, with a time limit, and hands the connection over.
final class ConnectionOpening {
    private let loop: EventLoop
    private let settings: ConnectionSettings
    private var attempt: ConnectionAttempt?
    private var watch: DescriptorWatch?
    private var timer: EventLoop.Timer?
    private var completion: ((Result<OpaquePointer, DatabaseError>) -> Void)?

    /// - Parameter completion: called once, from the loop; the connection is then the taker's. Not after `cancel()`.
    init(
        on loop: EventLoop, _ settings: ConnectionSettings,
        _ completion: @escaping (Result<OpaquePointer, DatabaseError>) -> Void
    ) {
        self.loop = loop
        self.settings = settings
        self.completion = completion
        loop.enqueue { [weak self] in self?.start() }
    }

    deinit {
        cancel()
    }

    func cancel() {
        completion = nil
        release()
    }

    private func start() {
        guard completion != nil else { return }
        attempt = ConnectionAttempt(settings)
        if let limit = settings.connectTimeout {
            timer = EventLoop.Timer(on: loop, after: limit) { [weak self] in
                self?.finish(.failure(ConnectionAttempt.timeout))
            }
        }
        if let step = attempt?.firstStep { handle(step) }
    }

    private func handle(_ step: ConnectionAttempt.Step) {
        switch step {
        case .waitToRead: wait(for: .read)
        case .waitToWrite: wait(for: .write)
        case .failed(let error): finish(.failure(error))
        case .connected:
            guard let connection = attempt.take()?.take() else {
                return finish(.failure(DatabaseError(.connection, "there is no memory for a connection")))
            }
            finish(.success(connection))
        }
    }

    private func wait(for interest: DescriptorWatch.Interest) {
        guard let socket = attempt?.socket else { return }
        do throws(EventLoopError) {
            watch = try DescriptorWatch(on: loop, descriptor: socket, interest: interest) { [weak self] _ in
                guard let self else { return }
                // libpq may close this socket and go on with another, so the watch ends first.
                watch?.cancel()
                watch = nil
                if let step = attempt?.advance() { handle(step) }
            }
        } catch {
            finish(.failure(DatabaseError(.connection, "the database's socket cannot be watched: \(error)")))
        }
    }

    private func finish(_ result: Result<OpaquePointer, DatabaseError>) {
        guard let completion else { return }
        self.completion = nil
        release()
        completion(result)
    }

    private func release() {
        timer?.cancel()
        timer = nil
        watch?.cancel()
        watch = nil
        attempt = nil
    }
}
