import CLibEvent
import EventLoop
import Glibc
import TestSupport
import Testing

@Suite("listener, connector and addresses")
struct ListenerTests {
    @Test("port 0 gets a free port, which is told, on IPv4 and IPv6", arguments: ["127.0.0.1", "::1", "localhost"])
    func freePort(host: String) throws {
        let loop = try EventLoop()
        let sockets = Box<[SocketAddress]>([])
        let listener = try Listener(on: loop, host: host, port: 0) { sockets.value.append($0.peer) }
        #expect(listener.port != 0)
        let outcome = Box<SocketAddress?>(nil)
        let connector = Connector(on: loop, host: host, port: listener.port, timeout: .seconds(5)) { result in
            if case .success(let socket) = consume result { outcome.value = socket.peer }
        }
        let isOver = loop.run(until: { outcome.value != nil && !sockets.value.isEmpty }, timeout: .seconds(60))
        #expect(isOver)
        #expect(outcome.value?.port == listener.port)
        #expect(sockets.value.first?.host.isLoopback == true)
        connector.cancel()
    }

    @Test("an IPv6 listener on :: takes IPv4 peers and tells them as IPv4")
    func dualStack() throws {
        let loop = try EventLoop()
        let peers = Box<[SocketAddress]>([])
        let listener = try Listener(on: loop, host: "::", port: 0) { peers.value.append($0.peer) }
        let peer = try RawSocket(connectingTo: listener.port)
        #expect(loop.run(until: { !peers.value.isEmpty }, timeout: .seconds(60)))
        #expect(peers.value.first?.host.description == "127.0.0.1")
        withExtendedLifetime(peer) {}
    }

    @Test("accepted sockets are non-blocking, close-on-exec, undelayed and kept alive")
    func socketOptions() throws {
        let loop = try EventLoop()
        let options = Box<[String: Int32]>([:])
        let listener = try Listener(on: loop, host: "127.0.0.1", port: 0) { socket in
            let descriptor = socket.descriptor
            func value(_ level: Int32, _ name: Int32) -> Int32 {
                var (value, length) = (Int32(-1), socklen_t(4))
                getsockopt(descriptor, level, name, &value, &length)
                return value
            }
            let tcp = Int32(IPPROTO_TCP)
            options.value = [
                "nonblocking": fcntl(descriptor, F_GETFL) & O_NONBLOCK,
                "cloexec": fcntl(descriptor, F_GETFD) & FD_CLOEXEC,
                "nodelay": value(tcp, TCP_NODELAY), "keepalive": value(SOL_SOCKET, SO_KEEPALIVE),
                "keepidle": value(tcp, TCP_KEEPIDLE), "usertimeout": value(tcp, TCP_USER_TIMEOUT),
            ]
        }
        let peer = try RawSocket(connectingTo: listener.port)
        #expect(loop.run(until: { !options.value.isEmpty }, timeout: .seconds(60)))
        #expect(
            options.value == [
                "nonblocking": O_NONBLOCK, "cloexec": FD_CLOEXEC, "nodelay": 1, "keepalive": 1, "keepidle": 60,
                "usertimeout": 120_000,
            ])
        withExtendedLifetime(peer) {}
    }

    @Test("a socket that nobody takes is closed")
    func untakenSocket() throws {
        let loop = try EventLoop()
        let listener = try Listener(on: loop, host: "127.0.0.1", port: 0) { _ in }
        let peer = try RawSocket(connectingTo: listener.port)
        #expect(
            loop.run(
                until: {
                    peer.receive(); return peer.isAtEnd
                }, timeout: .seconds(60)))
    }

    @Test("a paused listener accepts nobody until it is resumed, and close in the callback stops at once")
    func pauses() throws {
        let loop = try EventLoop()
        let count = Box(0)
        let listener = Box<Listener?>(nil)
        listener.value = try Listener(on: loop, host: "127.0.0.1", port: FreePort.find()) { _ in
            count.value += 1
            if count.value == 2 { listener.value?.close() }
        }
        let port = try #require(listener.value?.port)
        listener.value?.pause()
        let peers = try (0..<4).map { _ in try RawSocket(connectingTo: port) }
        #expect(!loop.run(until: { count.value > 0 }, timeout: .milliseconds(30)))
        listener.value?.resume()
        #expect(!loop.run(until: { count.value > 2 }, timeout: .milliseconds(30)))
        #expect(count.value == 2)
        #expect(throws: RawSocket.Refused.self) { _ = try RawSocket(connectingTo: port) }
        withExtendedLifetime(peers) { listener.value = nil }
    }

    @Test("a taken port and a bad address are errors that name the call")
    func refusals() throws {
        let loop = try EventLoop()
        let first = try Listener(on: loop, host: "127.0.0.1", port: 0) { _ in }
        let taken = #expect(throws: EventLoopError.self) {
            _ = try Listener(on: loop, host: "127.0.0.1", port: first.port) { _ in }
        }
        #expect(taken?.call == "bind")
        #expect(taken?.number == EADDRINUSE)
        #expect(taken?.description == "bind: Address already in use (98)")
        let unknown = #expect(throws: EventLoopError.self) {
            _ = try Listener(on: loop, host: "no such host", port: 1) { _ in }
        }
        #expect(unknown?.isNameResolution == true)
    }

    // In a process of its own, whose limit of descriptors is nobody else's.
    @Test("when descriptors run out the listener reports it, hangs up on who waits, does not spin, and recovers")
    func descriptorsRunOut() async {
        await #expect(processExitsWith: .success) {
            let loop = try EventLoop()
            let accepted = Box<[Int32]>([])
            let listener = try Listener(on: loop, host: "127.0.0.1", port: 0) { socket in
                accepted.value.append(socket.takeDescriptor())
            }
            let failures = Box<[EventLoopError]>([])
            let start = Box(loop.now)
            listener.failed = {
                failures.value.append($0)
                start.value = loop.now
            }
            let peers = try (0..<20).map { _ in try RawSocket(connectingTo: listener.port) }
            // Room for five more: every free descriptor is taken first, since the process may have inherited some, with
            // gaps between them.
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            var limit = rlimit()
            getrlimit(resource, &limit)
            let before = limit
            limit.rlim_cur = min(limit.rlim_max, 1024)
            try #require(setrlimit(resource, &limit) == 0)
            var fillers: [Int32] = []
            while case let filler = open("/dev/null", O_RDONLY | O_CLOEXEC), filler >= 0 { fillers.append(filler) }
            try #require(errno == EMFILE && fillers.count > 5)
            for filler in fillers.suffix(5) { close(filler) }

            try #require(loop.run(until: { !failures.value.isEmpty }, timeout: .seconds(60)))
            try #require(failures.value.map(\.number) == [EMFILE])
            // The runtime of the tests may have taken one for itself.
            let first = accepted.value.count
            try #require((3...5).contains(first))
            peers.forEach { $0.receive() }
            try #require(peers.filter(\.isAtEnd).count == 20 - first)

            // The next one waits for the rest to be over; the loop does not spin meanwhile.
            for descriptor in accepted.value { close(descriptor) }
            let late = try RawSocket(connectingTo: listener.port)
            let turns = Box(0)
            try #require(
                loop.run(
                    until: {
                        turns.value += 1
                        return accepted.value.count == first + 1
                    }, timeout: .seconds(60)))
            try #require(turns.value < 20)
            try #require(loop.now - start.value > .milliseconds(50))
            limit = before
            setrlimit(resource, &limit)
            withExtendedLifetime((late, listener)) {}
        }
    }

    @Test("a connector tells a refusal, an unknown name, and a time that is up")
    func connectorFails() throws {
        let loop = try EventLoop()
        let closed = try FreePort.find()
        func outcome(_ host: String, _ port: UInt16, _ timeout: Duration) -> EventLoopError? {
            let error = Box<EventLoopError?>(nil)
            let connector = Connector(on: loop, host: host, port: port, timeout: timeout) { result in
                if case .failure(let reason) = consume result { error.value = reason }
            }
            #expect(error.value == nil, "completed inside init")
            _ = loop.run(until: { error.value != nil }, timeout: .seconds(60))
            connector.cancel()
            return error.value
        }
        #expect(outcome("127.0.0.1", closed, .seconds(5))?.number == ECONNREFUSED)
        #expect(outcome("localhost", closed, .seconds(5))?.number == ECONNREFUSED)
        #expect(outcome("no such host", 1, .seconds(15))?.isNameResolution == true)
        // A listener whose backlog is full answers nothing.
        var options = Listener.Options()
        options.backlog = 1
        let full = Box<Listener?>(nil)
        full.value = try? Listener(on: loop, host: "127.0.0.1", port: 0, options: options) { _ in }
        full.value?.pause()
        let port = try #require(full.value?.port)
        let waiting = try (0..<2).map { _ in try RawSocket(connectingTo: port) }
        #expect(outcome("127.0.0.1", port, .milliseconds(50))?.number == ETIMEDOUT)
        withExtendedLifetime(waiting) {}
    }

    @Test("a released connector completes nothing, and may be released in its completion")
    func connectorReleases() throws {
        let loop = try EventLoop()
        let listener = try Listener(on: loop, host: "127.0.0.1", port: 0) { _ in }
        let count = Box(0)
        for host in ["127.0.0.1", "localhost"] {
            _ = Connector(on: loop, host: host, port: listener.port, timeout: .seconds(5)) { _ in count.value += 1 }
        }
        let connector = Box<Connector?>(nil)
        connector.value = Connector(on: loop, host: "127.0.0.1", port: listener.port, timeout: .seconds(5)) { _ in
            count.value += 100
            connector.value = nil
        }
        #expect(loop.run(until: { connector.value == nil }, timeout: .seconds(60)))
        #expect(!loop.run(until: { count.value != 100 }, timeout: .milliseconds(50)))
    }

    @Test(
        "addresses of digits print as they were read, in their shortest form",
        arguments: [
            ("127.0.0.1", "127.0.0.1:80", true), ("127.8.9.1", "127.8.9.1:80", true),
            ("192.0.2.1", "192.0.2.1:80", false),
            ("::1", "[::1]:80", true), ("2001:db8:0::1", "[2001:db8::1]:80", false), ("::", "[::]:80", false),
            ("::ffff:127.0.0.1", "127.0.0.1:80", true), ("::fffe:0:1", "[::fffe:0:1]:80", false),
        ])
    func prints(host: String, expected: String, isLoopback: Bool) throws {
        let address = try #require(SocketAddress(numericHost: host, port: 80))
        #expect(address.description == expected)
        #expect(address.host.isLoopback == isLoopback)
    }

    @Test("names are no addresses of digits", arguments: ["", "localhost", "1.2.3", "1.2.3.4.5", ":::", "1.2.3.4\0"])
    func refusesNames(host: String) {
        #expect(SocketAddress(numericHost: host, port: 1) == nil)
    }
}
