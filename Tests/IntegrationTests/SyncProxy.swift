import Foundation
import Synchronization

/// A TCP proxy before a daemon, which breaks connections at a byte or goes silent in one direction.
final class SyncProxy: Sendable {
    /// What becomes of a connection.
    struct Fate: Sendable {
        /// After how many bytes in either direction both sides lose the connection; nil: never.
        var cutUp: Int?
        var cutDown: Int?
    }

    private struct State {
        var target: Int
        var accepted = 0
        var isDownSilent = false
        var open: Set<Int32> = []
        var fate: @Sendable () -> Fate = { Fate() }
    }

    /// Where it listens.
    let port: Int
    private let listener: Int32
    private let state: Mutex<State>

    /// Starts before a daemon.
    init(to target: Int) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = Self.address(port: 0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) }
        }
        guard bound == 0, listen(listener, 64) == 0 else { throw SocketError(call: "listen", code: errno) }
        _ = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &size) }
        }
        let port = Int(in_port_t(bigEndian: address.sin_port))
        self.listener = listener
        self.port = port
        state = Mutex(State(target: target))
        Thread.detachNewThread { [weak self] in
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                guard let self else {
                    close(client)
                    return
                }
                self.serve(client)
            }
        }
    }

    deinit {
        cutAll()
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    /// How many connections came.
    var accepted: Int { state.withLock { $0.accepted } }

    /// Where connections lead from now on.
    func lead(to target: Int) { state.withLock { $0.target = target } }

    /// What becomes of connections from now on.
    func decide(_ fate: @escaping @Sendable () -> Fate) { state.withLock { $0.fate = fate } }

    /// Drops everything that the server says from now on, and tells nobody.
    func silenceServer(_ isSilent: Bool) { state.withLock { $0.isDownSilent = isSilent } }

    /// Breaks all connections.
    func cutAll() {
        state.withLock { for descriptor in $0.open { shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    private func serve(_ client: Int32) {
        let (target, fate) = state.withLock { state in
            state.accepted += 1
            return (state.target, state.fate())
        }
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = Self.address(port: target)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(client)
            close(server)
            return
        }
        state.withLock { $0.open.formUnion([client, server]) }
        let pair = Pair(client: client, server: server)
        Thread.detachNewThread { [weak self] in
            Self.pump(from: client, to: server, cut: fate.cutUp) { false }
            pair.finish { self?.forget(client, server) }
        }
        Thread.detachNewThread { [weak self] in
            Self.pump(from: server, to: client, cut: fate.cutDown) { self?.state.withLock { $0.isDownSilent } ?? false }
            pair.finish { self?.forget(client, server) }
        }
    }

    /// The two sockets of a connection, closed when both directions are over.
    private final class Pair: Sendable {
        let client: Int32
        let server: Int32
        private let ends = Mutex(2)

        init(client: Int32, server: Int32) {
            self.client = client
            self.server = server
        }

        func finish(_ forget: () -> Void) {
            shutdown(client, Int32(SHUT_RDWR))
            shutdown(server, Int32(SHUT_RDWR))
            let left = ends.withLock {
                $0 -= 1
                return $0
            }
            guard left == 0 else { return }
            forget()
            close(client)
            close(server)
        }
    }

    private func forget(_ client: Int32, _ server: Int32) {
        state.withLock { $0.open.subtract([client, server]) }
    }

    private static func pump(from source: Int32, to target: Int32, cut: Int?, isSilent: () -> Bool) {
        var left = cut ?? .max
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while left > 0 {
            let count = recv(source, &buffer, min(buffer.count, left), 0)
            guard count > 0 else { return }
            left -= count
            if isSilent() { continue }
            var sent = 0
            while sent < count {
                let step = buffer.withUnsafeBytes {
                    send(target, $0.baseAddress.map { $0 + sent }, count - sent, Int32(MSG_NOSIGNAL))
                }
                guard step > 0 else { return }
                sent += step
            }
        }
    }

    private static func address(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return address
    }
}
