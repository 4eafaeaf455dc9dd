import CLibEvent
import Glibc

/// A TCP socket that accepts connections.
///
/// When the process or the system runs out of descriptors, those who wait in the backlog are hung up on (a descriptor
/// is held in reserve for that), the failure is reported, and accepting pauses for ``Options/pauseOnShortage``, so that
/// the loop neither spins nor lets peers wait for nothing.
public final class Listener {
    /// What may be chosen about a listener.
    public struct Options: Sendable {
        /// How many connections may wait to be accepted; the system caps it (`net.core.somaxconn`).
        public var backlog: Int32 = 1024
        /// How many are accepted in one turn of the loop before others get theirs; fewer, when they take their time.
        public var maxAcceptsPerTurn = 64
        /// How long accepting rests when descriptors or memory ran out.
        public var pauseOnShortage: Duration = .milliseconds(100)
        /// How long an accepted connection is silent before the system probes the peer.
        public var keepaliveIdle: Duration = .seconds(60)

        /// The defaults.
        public init() {}
    }

    /// Where it listens; the port is the one really bound when 0 was asked for.
    public let address: SocketAddress
    /// The port it listens on.
    public var port: UInt16 { address.port }
    /// Called when accepting failed, once for a shortage, before accepting rests for a moment.
    public var failed: ((EventLoopError) -> Void)?

    private let options: Options
    private let accepted: (consuming ConnectedSocket) -> Void
    private let descriptor: Int32
    private var reserve: Int32
    private var watch: DescriptorWatch?
    private var restTimer: EventLoop.Timer?
    private let loop: EventLoop
    private var isPaused = false
    private var isClosed = false

    /// Binds, listens and begins to accept.
    /// - Parameters:
    ///   - loop: the loop that accepts.
    ///   - host: an address, such as `127.0.0.1`, `::1`, `0.0.0.0`, `::` (IPv4 too), or a name, whose first address is
    ///     taken; resolving a name blocks.
    ///   - port: 0 for a free one, see ``port``.
    ///   - options: how it listens.
    ///   - accepted: is given each connection. Closing the listener in it is safe.
    public init(
        on loop: EventLoop, host: String, port: UInt16, options: Options = Options(),
        accepted: @escaping (_ socket: consuming ConnectedSocket) -> Void
    ) throws(EventLoopError) {
        guard let wanted = try SocketAddress.resolve(host: host, port: port, isPassive: true).first else {
            throw EventLoopError(call: "getaddrinfo", number: 0, message: "no address")
        }
        let descriptor = try Self.open(wanted, options)
        guard let bound = SocketAddress.local(of: descriptor) else {
            let error = EventLoopError(call: "getsockname")
            Glibc.close(descriptor)
            throw error
        }
        self.loop = loop
        self.options = options
        self.accepted = accepted
        self.descriptor = descriptor
        address = bound
        reserve = Self.openReserve()
        // When the watch cannot be made, deinit closes what is open by now.
        watch = try DescriptorWatch(on: loop, descriptor: descriptor, interest: .read) { [unowned self] _ in
            // Safe: the watch is this object's own, and calls nothing once this object has released it.
            self.acceptSome()
        }
    }

    deinit {
        close()
    }

    /// Lets new connections wait in the backlog.
    public func pause() {
        isPaused = true
        updateInterest()
    }

    /// Accepts again.
    public func resume() {
        isPaused = false
        updateInterest()
    }

    /// Stops listening for good; what waits in the backlog is reset by the system.
    public func close() {
        guard !isClosed else { return }
        isClosed = true
        watch = nil
        restTimer = nil
        Glibc.close(descriptor)
        if reserve >= 0 { Glibc.close(reserve) }
        reserve = -1
    }

    private func updateInterest() {
        let isResting = restTimer?.isScheduled ?? false
        do throws(EventLoopError) {
            try watch?.setInterest(isPaused || isResting ? [] : .read)
        } catch {
            failed?(error)
        }
    }

    private func acceptSome() {
        let end = loop.now + EventLoop.greedyTime
        for number in 0..<options.maxAcceptsPerTurn {
            guard !isClosed, !isPaused, number == 0 || loop.now < end else { return }
            let (socket, peer) = Self.accept(descriptor)
            if socket >= 0 {
                guard let peer else {
                    Glibc.close(socket)
                    continue
                }
                accepted(ConnectedSocket(descriptor: socket, peer: peer))
                continue
            }
            switch errno {
            case EAGAIN:
                return
            case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                return rest(after: EventLoopError(call: "accept4"))
            default:
                // Those of the connection, not of the listener (ECONNABORTED, EPROTO, network errors; see accept(2)).
                continue
            }
        }
    }

    private func rest(after error: EventLoopError) {
        if reserve >= 0, error.number == EMFILE || error.number == ENFILE {
            Glibc.close(reserve)
            for _ in 0..<options.maxAcceptsPerTurn {
                let (socket, _) = Self.accept(descriptor)
                guard socket >= 0 else { break }
                Glibc.close(socket)
            }
        }
        if reserve >= 0 { reserve = Self.openReserve() }
        restTimer = EventLoop.Timer(on: loop, after: options.pauseOnShortage) { [unowned self] in
            // Safe: the timer is this object's own and ends with it.
            if self.reserve < 0 { self.reserve = Self.openReserve() }
            self.updateInterest()
        }
        updateInterest()
        failed?(error)
    }

    private static func accept(_ descriptor: Int32) -> (socket: Int32, peer: SocketAddress?) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let flags = Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
                let socket = accept4(descriptor, address, &length, flags)
                return (socket, socket >= 0 ? SocketAddress(address, length: length) : nil)
            }
        }
    }

    private static func openReserve() -> Int32 {
        Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC)
    }

    private static func open(_ address: SocketAddress, _ options: Options) throws(EventLoopError) -> Int32 {
        let descriptor = try address.openStreamSocket()
        do throws(EventLoopError) {
            try setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
            if address.host.isIPv6 { try setOption(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0) }
            // Accepted sockets inherit these, which spares three system calls a connection.
            try setStreamOptions(descriptor, keepaliveIdle: options.keepaliveIdle)
            guard address.withSystemAddress({ bind(descriptor, $0, $1) }) == 0 else {
                throw EventLoopError(call: "bind")
            }
            guard listen(descriptor, max(1, options.backlog)) == 0 else { throw EventLoopError(call: "listen") }
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        return descriptor
    }
}
