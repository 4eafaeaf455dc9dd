import CLibEvent
import Dispatch
import Glibc

/// Connects to a host over TCP without blocking the loop.
///
/// A name is resolved by `getaddrinfo` on a thread of its own; an address of digits needs none. The addresses are tried one
/// after the other, each for its share of the time that is left. The owner keeps the connector until it has completed;
/// releasing it cancels, and then the completion is not called.
public final class Connector {
    private let loop: EventLoop
    private let deadline: ContinuousClock.Instant
    private var completion: ((consuming Result<ConnectedSocket, EventLoopError>) -> Void)?
    private var addresses: ArraySlice<SocketAddress> = []
    private var attempt: Attempt?
    private var timer: EventLoop.Timer?
    private var lastError: EventLoopError?

    /// Begins to connect.
    /// - Parameters:
    ///   - loop: the loop that does it.
    ///   - host: a name or an address.
    ///   - port: the port there.
    ///   - timeout: for everything, name resolution included.
    ///   - completion: called once, from the loop, with the socket or the last address's error (`ETIMEDOUT` when the time
    ///     is up). Releasing the connector in it is safe.
    public init(
        on loop: EventLoop, host: String, port: UInt16, timeout: Duration,
        completion: @escaping (_ result: consuming Result<ConnectedSocket, EventLoopError>) -> Void
    ) {
        self.loop = loop
        self.completion = completion
        deadline = loop.now + timeout
        timer = EventLoop.Timer(on: loop, after: timeout) { [unowned self] in
            // Safe, as in all closures below: timers and watches are this object's own and end with it.
            self.attemptFailed(EventLoopError(call: "connect", number: ETIMEDOUT))
        }
        if let address = SocketAddress(numericHost: host, port: port) {
            addresses = [address]
            loop.enqueue { [weak self] in self?.tryNext() }
        } else {
            resolve(host, port)
        }
    }

    deinit {
        cancel()
    }

    /// Gives up; the completion is not called any more.
    public func cancel() {
        completion = nil
        timer = nil
        attempt = nil
    }

    private func resolve(_ host: String, _ port: UInt16) {
        let reply = Reply(to: self)
        let remote = loop.remote
        DispatchQueue.global().async {
            let result = Result { () throws(EventLoopError) in try SocketAddress.resolve(host: host, port: port) }
            remote.post { reply.connector?.resolved(result) }
        }
    }

    private func resolved(_ result: Result<[SocketAddress], EventLoopError>) {
        switch result {
        case .success(let addresses):
            self.addresses = addresses[...]
            tryNext()
        case .failure(let error):
            complete(.failure(error))
        }
    }

    private func tryNext() {
        guard completion != nil else { return }
        let timeLeft = deadline - loop.now
        guard timeLeft > .zero, let address = addresses.first else {
            return complete(.failure(lastError ?? EventLoopError(call: "connect", number: ETIMEDOUT)))
        }
        timer?.reschedule(after: timeLeft / addresses.count)
        addresses = addresses.dropFirst()
        do throws(EventLoopError) {
            attempt = try Attempt(on: loop, to: address) { [unowned self] in self.attemptFinished() }
        } catch {
            attemptFailed(error)
        }
    }

    private func attemptFinished() {
        guard let attempt else { return }
        if let error = attempt.error { return attemptFailed(error) }
        let socket = attempt.takeSocket()
        self.attempt = nil
        complete(.success(socket))
    }

    private func attemptFailed(_ error: EventLoopError) {
        attempt = nil
        lastError = error
        // Never from inside `init`, and no recursion through many addresses.
        loop.enqueue { [weak self] in self?.tryNext() }
    }

    private func complete(_ result: consuming Result<ConnectedSocket, EventLoopError>) {
        let completion = completion
        cancel()
        completion?(result)
    }

    /// One address's socket on its way.
    private final class Attempt {
        private var socket: Int32
        private let address: SocketAddress
        private var watch: DescriptorWatch?

        init(on loop: EventLoop, to address: SocketAddress, finished: @escaping () -> Void) throws(EventLoopError) {
            self.address = address
            socket = try address.openStreamSocket()
            // From here on deinit closes it.
            try setStreamOptions(socket, keepaliveIdle: .seconds(60))
            guard address.withSystemAddress({ connect(socket, $0, $1) }) == 0 || errno == EINPROGRESS else {
                throw EventLoopError(call: "connect")
            }
            watch = try DescriptorWatch(on: loop, descriptor: socket, interest: .write) { _ in finished() }
        }

        deinit {
            watch = nil
            if socket >= 0 { Glibc.close(socket) }
        }

        var error: EventLoopError? {
            var number: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(socket, SOL_SOCKET, SO_ERROR, &number, &length)
            return number == 0 ? nil : EventLoopError(call: "connect", number: number)
        }

        func takeSocket() -> ConnectedSocket {
            watch = nil
            defer { socket = -1 }
            return ConnectedSocket(descriptor: socket, peer: address)
        }
    }

    /// Brings the resolver's answer back. `@unchecked`: other threads only carry it; the reference in it is read on the
    /// loop's thread alone.
    private final class Reply: @unchecked Sendable {
        private(set) weak var connector: Connector?
        init(to connector: Connector) { self.connector = connector }
    }
}
