import EventLoop
import Glibc
import Testing

@Suite("the PROXY header")
struct ProxyHeaderTests {
    @Test("tells an IPv4 and an IPv6 source")
    func sources() throws {
        let v4 = proxyHeader(from: "192.0.2.7", port: 49_152)
        #expect(ProxyHeader.read(v4) == .header(ProxyHeader(length: 28, source: try address("192.0.2.7", 49_152))))
        let v6 = proxyHeader(from: "2001:db8::7", port: 1)
        #expect(ProxyHeader.read(v6) == .header(ProxyHeader(length: 52, source: try address("2001:db8::7", 1))))
    }

    @Test("of a balancer's own connection, or of another family, leaves the peer as it is")
    func local() {
        #expect(ProxyHeader.read(proxyHeader(command: 0x20)) == .header(ProxyHeader(length: 16, source: nil)))
        let unix = proxyHeader(family: 0x31, body: [UInt8](repeating: 0, count: 216))
        #expect(ProxyHeader.read(unix) == .header(ProxyHeader(length: 232, source: nil)))
        let unspecified = proxyHeader(family: 0x00, body: [1, 2, 3])
        #expect(ProxyHeader.read(unspecified) == .header(ProxyHeader(length: 19, source: nil)))
    }

    @Test("is passed over with its additional values, and not a byte more")
    func values() throws {
        let header = proxyHeader(from: "192.0.2.7", port: 7, values: [0x04, 0, 3, 1, 2, 3])
        let expected = ProxyHeader(length: 34, source: try address("192.0.2.7", 7))
        #expect(ProxyHeader.read(header + Array("LOGIN x\n".utf8)) == .header(expected))
    }

    @Test("is incomplete up to its last byte")
    func prefixes() {
        let header = proxyHeader(from: "192.0.2.7", port: 7)
        for count in 0..<header.count {
            let expected = count < 16 ? 16 : header.count
            #expect(ProxyHeader.read(header.prefix(count)) == .incomplete(needed: expected), "\(count) bytes")
        }
    }

    @Test("is nothing else")
    func faults() {
        #expect(ProxyHeader.read(Array("LOGIN".utf8)) == .invalid(.signature))
        #expect(ProxyHeader.read(Array("PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n".utf8)) == .invalid(.signature))
        #expect(ProxyHeader.read(proxyHeader(command: 0x11)) == .invalid(.command))
        #expect(ProxyHeader.read(proxyHeader(command: 0x22)) == .invalid(.command))
        // Two addresses and two ports are 12 bytes for IPv4, and 36 for IPv6.
        for (family, least) in [(UInt8(0x11), 12), (0x21, 36)] {
            for length in 0..<least {
                let short = proxyHeader(family: family, body: [UInt8](repeating: 1, count: length))
                #expect(ProxyHeader.read(short) == .invalid(.length), "\(length) bytes")
            }
        }
        let endless = proxyHeader(from: "192.0.2.7", port: 7, values: [UInt8](repeating: 0, count: 4_000))
        #expect(ProxyHeader.read(endless) == .invalid(.length))
    }

    @Test("is taken off a socket in any pieces, and what follows stays for the next reader")
    func preface() throws {
        let header = proxyHeader(from: "192.0.2.7", port: 7)
        for cut in [1, 12, 16, 20, header.count, header.count + 3] {
            let loop = try EventLoop()
            let seen = Seen(on: loop)
            let listener = try Listener(on: loop, host: "127.0.0.1", port: 0) { seen.take($0) }
            let client = try RawSocket(connectingTo: listener.port)
            let stream = header + Array("PING\n".utf8)
            client.send(stream.prefix(cut))
            _ = loop.run(until: { seen.isDone }, timeout: .milliseconds(20))
            client.send(stream.dropFirst(cut))
            #expect(loop.run(until: { seen.isDone }, timeout: .seconds(60)))
            #expect(seen.peer == (try address("192.0.2.7", 7)), "cut at \(cut)")
            #expect(seen.following == Array("PING\n".utf8), "cut at \(cut)")
        }
    }

    @Test("that does not come, breaks off or is none fails in time, without keeping the loop awake")
    func failures() throws {
        let header = proxyHeader(from: "192.0.2.7", port: 7)
        let loop = try EventLoop()
        func outcome(
            _ timeout: Duration = .seconds(60), _ act: (RawSocket) -> Void
        ) throws -> ProxyPreface.Failure? {
            let seen = Seen(on: loop, timeout: timeout)
            let listener = try Listener(on: loop, host: "127.0.0.1", port: 0) { seen.take($0) }
            let client = try RawSocket(connectingTo: listener.port)
            act(client)
            #expect(loop.run(until: { seen.isDone }, timeout: .seconds(60)))
            return seen.failure
        }
        #expect(try outcome(.milliseconds(200)) { $0.send(header.prefix(20)) } == .timedOut)
        #expect(try outcome(.milliseconds(200)) { _ in } == .timedOut)
        #expect(try outcome { $0.send("LOGIN abc\n".utf8) } == .invalid(.signature))
        let broken = try outcome {
            $0.send(header.prefix(20))
            $0.hangUp()
        }
        guard case .failed = broken else {
            Issue.record("a header that breaks off: \(String(describing: broken))")
            return
        }
    }
}

private func address(_ host: String, _ port: UInt16) throws -> SocketAddress {
    try #require(SocketAddress(numericHost: host, port: port))
}

/// A header of TCP over IPv4 or IPv6, to 192.0.2.1:4386 or 2001:db8::1.
private func proxyHeader(from host: String, port: UInt16, values: [UInt8] = []) -> [UInt8] {
    let isIPv6 = host.contains(":")
    var source = [UInt8](repeating: 0, count: isIPv6 ? 16 : 4)
    var target = source
    inet_pton(isIPv6 ? AF_INET6 : AF_INET, host, &source)
    inet_pton(isIPv6 ? AF_INET6 : AF_INET, isIPv6 ? "2001:db8::1" : "192.0.2.1", &target)
    let ports = [UInt8(port >> 8), UInt8(port & 255), 0x11, 0x22]
    return proxyHeader(family: isIPv6 ? 0x21 : 0x11, body: source + target + ports + values)
}

private func proxyHeader(command: UInt8 = 0x21, family: UInt8 = 0x11, body: [UInt8] = []) -> [UInt8] {
    let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    return signature + [command, family, UInt8(body.count >> 8), UInt8(body.count & 255)] + body
}

/// What came of a preface, and what lay behind it.
private final class Seen {
    private let loop: EventLoop
    private var preface: ProxyPreface?
    private(set) var peer: SocketAddress?
    private(set) var following: [UInt8] = []
    private(set) var failure: ProxyPreface.Failure?

    private let timeout: Duration

    init(on loop: EventLoop, timeout: Duration = .seconds(60)) {
        self.loop = loop
        self.timeout = timeout
    }

    var isDone: Bool { failure != nil || following.count == 5 }

    func take(_ socket: consuming ConnectedSocket) {
        preface = try? ProxyPreface(on: loop, socket: socket, timeout: timeout) { [unowned self] result in
            switch consume result {
            case .success(let socket): self.read(socket)
            case .failure(let failure): self.failure = failure
            }
            self.preface = nil
        }
    }

    private var watch: DescriptorWatch?

    private func read(_ socket: consuming ConnectedSocket) {
        peer = socket.peer
        let descriptor = socket.takeDescriptor()
        watch = try? DescriptorWatch(on: loop, descriptor: descriptor, interest: .read) { [unowned self] _ in
            var bytes = [UInt8](repeating: 0, count: 64)
            let count = Glibc.read(descriptor, &bytes, bytes.count)
            if count > 0 { self.following += bytes.prefix(count) }
            guard count <= 0 || self.isDone else { return }
            self.watch = nil
            close(descriptor)
        }
    }
}

@Suite("a range of addresses")
struct NetworkTests {
    @Test(
        "holds those that agree in its first bits, and no others",
        arguments: [
            ("10.1.0.0/16", ["10.1.0.0", "10.1.255.255"], ["10.0.255.255", "10.2.0.0", "::ffff:0:0", "a01::"]),
            ("192.0.2.7", ["192.0.2.7", "::ffff:192.0.2.7"], ["192.0.2.6", "192.0.2.8"]),
            ("192.0.2.128/25", ["192.0.2.128", "192.0.2.255"], ["192.0.2.127"]),
            ("0.0.0.0/0", ["0.0.0.0", "255.255.255.255"], ["::1", "::"]),
            ("2001:db8::/32", ["2001:db8::", "2001:db8:ffff::1"], ["2001:db9::", "2001:db7::1", "192.0.2.1"]),
            ("2001:db8::1:0/112", ["2001:db8::1:0", "2001:db8::1:ffff"], ["2001:db8::2:0", "2001:db8::"]),
            ("::1", ["::1"], ["::", "::2"]),
            ("::/0", ["::", "ffff::"], ["0.0.0.0"]),
        ])
    func contains(range: String, inside: [String], outside: [String]) throws {
        let network = try #require(SocketAddress.Network(range))
        for text in inside { #expect(network.contains(try address(text, 0).host), "\(text) in \(range)") }
        for text in outside { #expect(!network.contains(try address(text, 0).host), "\(text) not in \(range)") }
    }

    @Test(
        "is nothing else",
        arguments: ["", "/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/x", "10.0.0/8", "::/129", "a/8", "10.0.0.0/"])
    func refusals(text: String) {
        #expect(SocketAddress.Network(text) == nil)
    }

    @Test("a household of IPv6 is one network, of IPv4 each address is")
    func households() throws {
        func network(_ text: String) throws -> SocketAddress.Host { try address(text, 0).host.network }
        #expect(try network("2001:db8:1:2:aaaa::1") == network("2001:db8:1:2::ffff"))
        #expect(try network("2001:db8:1:2::1") != network("2001:db8:1:3::1"))
        #expect(try network("192.0.2.1") != network("192.0.2.2"))
    }
}
