import Glibc

/// Takes the PROXY header off an accepted socket before anything else reads from it, TLS not excepted.
///
/// The owner keeps it until it has completed; releasing it closes the socket.
public final class ProxyPreface {
    /// What came of it.
    public enum Failure: Error, Equatable, Sendable {
        /// The stream does not begin with a header.
        case invalid(ProxyHeader.Fault)
        /// The header did not come in time.
        case timedOut
        /// The peer went, or the system failed.
        case failed(EventLoopError)
    }

    private var descriptor: Int32
    private let peer: SocketAddress
    /// How many bytes must be there before it is worth looking.
    private var awaited = 1
    private var watch: DescriptorWatch?
    private var timer: EventLoop.Timer?
    private var completion: ((consuming Result<ConnectedSocket, Failure>) -> Void)?

    /// Begins to wait for the header.
    /// - Parameters:
    ///   - loop: the loop that reads.
    ///   - socket: just accepted; nothing was read from it.
    ///   - timeout: for the whole header.
    ///   - completion: called once, from the loop, with the socket, whose peer is then whom the header names. Releasing the
    ///     preface in it is safe.
    public init(
        on loop: EventLoop, socket: consuming ConnectedSocket, timeout: Duration,
        completion: @escaping (_ result: consuming Result<ConnectedSocket, Failure>) -> Void
    ) throws(EventLoopError) {
        peer = socket.peer
        self.completion = completion
        descriptor = socket.takeDescriptor()
        timer = EventLoop.Timer(on: loop, after: timeout) { [unowned self] in
            // Safe, as below: timer and watch are this object's own and end with it.
            self.complete(.failure(.timedOut))
        }
        watch = try DescriptorWatch(on: loop, descriptor: descriptor, interest: .read) { [unowned self] _ in
            self.readSome()
        }
    }

    deinit {
        watch = nil
        if descriptor >= 0 { close(descriptor) }
    }

    private func readSome() {
        // Looked at, not taken: what lies behind the header belongs to whoever reads the socket next.
        var bytes = [UInt8](repeating: 0, count: ProxyHeader.maxLength)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_PEEK))
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EINTR { return }
            let number = count == 0 ? ECONNRESET : errno
            return complete(.failure(.failed(EventLoopError(call: "recv", number: number))))
        }
        // Woken with less than was asked for: the peer sends no more.
        guard count >= awaited else {
            return complete(.failure(.failed(EventLoopError(call: "recv", number: ECONNRESET))))
        }
        switch ProxyHeader.read(bytes.prefix(count)) {
        case .invalid(let fault): complete(.failure(.invalid(fault)))
        case .header(let header): take(header)
        case .incomplete(let needed): wait(for: needed)
        }
    }

    /// Is called again only when there is more to see: a half header must not keep the loop awake.
    private func wait(for needed: Int) {
        awaited = needed
        do throws(EventLoopError) {
            try setOption(descriptor, SOL_SOCKET, SO_RCVLOWAT, Int32(needed))
        } catch {
            complete(.failure(.failed(error)))
        }
    }

    private func take(_ header: ProxyHeader) {
        var bytes = [UInt8](repeating: 0, count: header.length)
        do throws(EventLoopError) {
            try setOption(descriptor, SOL_SOCKET, SO_RCVLOWAT, 1)
        } catch {
            return complete(.failure(.failed(error)))
        }
        guard recv(descriptor, &bytes, bytes.count, 0) == header.length else {
            return complete(.failure(.failed(EventLoopError(call: "recv"))))
        }
        let socket = ConnectedSocket(descriptor: descriptor, peer: header.source ?? peer)
        watch = nil
        descriptor = -1
        complete(.success(socket))
    }

    private func complete(_ result: consuming Result<ConnectedSocket, Failure>) {
        let completion = completion
        self.completion = nil
        watch = nil
        timer = nil
        completion?(result)
    }
}

extension ProxyPreface.Failure: CustomStringConvertible {
    /// For the log.
    public var description: String {
        switch self {
        case .invalid(.signature): "it begins with no header of version 2"
        case .invalid(.command): "its version or command is unknown"
        case .invalid(.length): "its length is wrong"
        case .timedOut: "it did not come in time"
        case .failed(let error): "\(error)"
        }
    }
}
