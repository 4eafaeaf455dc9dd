import CLibEvent
import Glibc
import TestSupport
import Testing

@testable import EventLoop

@Suite("how TLS begins and ends")
struct HandshakeTests {
    private func shared() throws -> (server: TLSServerContext, client: TLSClientContext) {
        let files = try TestCertificates.shared().server
        return (try Pair.serverContext(files), try Pair.clientContext(.pinned(files.fingerprint)))
    }

    @Test("the newest version and an authenticated cipher are agreed on")
    func agrees() throws {
        let contexts = try shared()
        let pair = try Pair(server: contexts.server, client: contexts.client)
        #expect(pair.clientSide?.securityDescription == "TLSv1.3 TLS_AES_128_GCM_SHA256")
        #expect(pair.talks())
    }

    @Test("what is written before the handshake's end arrives after it, and the peer's name is checked first")
    func writesEarly() throws {
        let contexts = try shared()
        let link = try Link(over: .tls, isStarted: false)
        link.connection?.start(delegate: link.recorder)
        link.connection?.write(Array("early\n".utf8))
        link.settle()
        #expect(link.connection?.pendingOutputBytes == 6)
        #expect(
            link.run {
                link.peer.shakeHands()
                link.peer.receive()
                return link.peer.text == "early\n"
            })
        withExtendedLifetime(contexts) {}
    }

    @Test(
        "an end with close_notify is an end; without it, it is an error once the whole lines were told",
        arguments: [false, true])
    func truncation(isTruncated: Bool) throws {
        let link = try Link(over: .tls)
        link.peer.send("one\ntwo\nhal")
        link.peer.finishSending(isTruncated: isTruncated)
        #expect(link.run { link.recorder.events.count == 3 })
        #expect(link.recorder.lines == ["one", "two"])
        guard isTruncated else {
            #expect(link.recorder.events.last == .inputEnded(unterminated: 3))
            return
        }
        guard case .ended(.insecure(let error)) = link.recorder.events.last else {
            Issue.record("\(link.recorder.events)")
            return
        }
        #expect(error.kind == .truncated)
    }

    @Test("closing says so in TLS, with and without a flush", arguments: [false, true])
    func saysGoodbye(isFlushed: Bool) throws {
        let link = try Link(over: .tls)
        link.connection?.write(Array("bye\n".utf8))
        if isFlushed {
            link.connection?.closeAfterFlush()
        } else {
            link.settle()
            link.connection?.close()
        }
        #expect(
            link.run {
                link.peer.receive()
                return link.peer.isAtEnd
            })
        #expect(link.peer.text == "bye\n")
        #expect(link.peer.hasHeardGoodbye)
        link.peer.hangUp()
        #expect(link.run { link.recorder.end == .closed })
    }

    @Test("a connection that is cut off with output left looks cut off to the peer")
    func cutOff() throws {
        let link = try Link(over: .tls, receiveBuffer: 4_096)
        link.connection?.write([UInt8](repeating: 120, count: 8_000_000))
        link.settle()
        link.connection?.close()
        #expect(
            link.run {
                link.peer.receive()
                return link.peer.isAtEnd || link.peer.isBroken
            })
        #expect(!link.peer.hasHeardGoodbye)
    }

    @Test("bytes that were changed on the way end the connection, and none of them is told")
    func tampering() throws {
        let link = try Link(over: .tls)
        link.peer.send("honest\n")
        #expect(link.run { link.recorder.lineCount == 1 })
        // A record of application data with a tag that is not its own.
        let forged: [UInt8] = [23, 3, 3, 0, 40] + [UInt8](repeating: 0x41, count: 40)
        forged.withUnsafeBytes { _ = Glibc.send(link.peer.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        #expect(link.run { link.recorder.end != nil })
        #expect(link.recorder.lines == ["honest"])
        if case .insecure = link.recorder.end {} else { Issue.record("\(link.recorder.events)") }
    }

    @Test(
        "a peer that does not speak TLS is told so in plain text",
        arguments: ["HELLO\n", "GET / HTTP/1.1\r\n\r\n", "\0\0"])
    func plainPeer(words: String) throws {
        let contexts = try shared()
        let pair = try Pair(server: contexts.server, client: nil)
        pair.clientSide?.write(Array(words.utf8))
        #expect(pair.run { pair.server.end != nil && pair.client.lineCount > 0 })
        #expect(pair.serverFailure == .plainPeer)
        #expect(pair.client.lines == ["speak TLS"])
        #expect(pair.server.lineCount == 0)
    }

    @Test("a peer that says nothing is told so, too, before the time for the handshake is over")
    func silentPeer() throws {
        let contexts = try shared()
        var options = Connection.Options()
        options.handshakeTimeout = .milliseconds(500)
        let pair = try Pair(server: contexts.server, client: nil, options: options)
        #expect(pair.run { pair.client.lineCount > 0 })
        #expect(pair.client.lines == ["speak TLS"])
        #expect(pair.run { pair.server.end != nil || pair.client.end != nil })
    }

    @Test("a client finds out that a server speaks plainly")
    func plainServer() throws {
        let contexts = try shared()
        let loop = try EventLoop()
        let greeted = Recorder()
        let accepted = Box<Connection?>(nil)
        let listener = try Listener(on: loop, host: "127.0.0.1", port: 0) { socket in
            let connection = Connection(on: loop, socket: socket)
            connection.start(delegate: greeted)
            connection.write(Array("IEUM 1 server=x\n".utf8))
            accepted.value = connection
        }
        let client = Recorder()
        let connection = Box<Connection?>(nil)
        let connector = Connector(on: loop, host: "127.0.0.1", port: listener.port, timeout: .seconds(5)) { result in
            guard case .success(let socket) = consume result else { return }
            connection.value = Connection(
                on: loop, socket: socket, security: .client(contexts.client, host: "127.0.0.1"))
            connection.value?.start(delegate: client)
        }
        #expect(loop.run(until: { client.end != nil }, timeout: .seconds(60)))
        guard case .insecure(let error) = client.end else {
            Issue.record("\(client.events)")
            return
        }
        #expect(error.kind == .plainPeer)
        withExtendedLifetime((connector, listener)) {}
    }

    @Test("a handshake that comes drop by drop is cut at its time")
    func slowDrip() throws {
        var options = Connection.Options()
        options.handshakeTimeout = .milliseconds(400)
        let link = try Link(over: .tls, options: options, isStarted: false)
        link.connection?.start(delegate: link.recorder)
        let start = link.loop.now
        // The beginning of a record of 16 KB that never comes to its end.
        _ = [UInt8]([22, 3, 1, 0x40, 0]).withUnsafeBytes {
            Glibc.send(link.peer.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        let drip = EventLoop.Timer(on: link.loop, after: .zero, every: .milliseconds(20)) {
            var byte: UInt8 = 1
            _ = Glibc.send(link.peer.descriptor, &byte, 1, Int32(MSG_NOSIGNAL))
        }
        #expect(link.run { link.recorder.end != nil })
        drip.cancel()
        guard case .insecure(let error) = link.recorder.end else {
            Issue.record("\(link.recorder.events)")
            return
        }
        #expect(error.kind == .timedOut || error.kind == .other)
        // All of that record would take five minutes.
        #expect(link.loop.now - start < .seconds(30))
        #expect(error.kind != .timedOut || link.loop.now - start > .milliseconds(350))
    }

    /// A client's and a server's TLS with an attacker between them.
    @Test("an attacker who hides TLS 1.3 from the server does not get TLS 1.2 out of it")
    func downgrade() throws {
        let contexts = try shared()
        let wires = try (0..<4).map { _ in try #require(evbuffer_new()) }
        defer { for wire in wires { evbuffer_free(wire) } }
        let client = try TLSLayer(
            .client(contexts.client, host: "127.0.0.1"), wireInput: wires[0], wireOutput: wires[1])
        let server = try TLSLayer(.server(contexts.server), wireInput: wires[2], wireOutput: wires[3])
        #expect(try !client.advanceHandshake())
        var hello = [UInt8](repeating: 0, count: evbuffer_get_length(wires[1]))
        evbuffer_remove(wires[1], &hello, hello.count)
        // The extension supported_versions with TLS 1.3 in it becomes one that nobody knows.
        let extensionStart = try #require(
            hello.indices.first { index in
                index + 9 <= hello.count && hello[index] == 0 && hello[index + 1] == 0x2B
                    && hello[(index + 5)...(index + 8)].elementsEqual([3, 4, 3, 3])
            })
        hello[extensionStart] = 0xFA
        evbuffer_add(wires[2], hello, hello.count)
        #expect(try !server.advanceHandshake())
        evbuffer_add_buffer(wires[0], wires[3])
        #expect(throws: TLSError.self) { try client.advanceHandshake() }
        #expect(client.stage == .failed)
    }

    @Test(
        "a client names by SNI the host that it wants; an address is not named",
        arguments: [("games.example.org", true), ("127.0.0.1", false), ("::1", false)])
    func serverName(host: String, isNamed: Bool) throws {
        let context = try shared().client
        let (input, output) = (try #require(evbuffer_new()), try #require(evbuffer_new()))
        defer { for buffer in [input, output] { evbuffer_free(buffer) } }
        let client = try TLSLayer(.client(context, host: host), wireInput: input, wireOutput: output)
        #expect(try !client.advanceHandshake())
        var hello = [UInt8](repeating: 0, count: evbuffer_get_length(output))
        evbuffer_remove(output, &hello, hello.count)
        // RFC 6066, section 3: a host_name (0), its length, and the name.
        let name = [0, 0, UInt8(host.utf8.count)] + Array(host.utf8)
        #expect((hello.firstRange(of: name) != nil) == isNamed)
        #expect(isNamed || hello.firstRange(of: Array(host.utf8)) == nil)
    }

    @Test("connections that are over leave nothing behind, however they ended")
    func leavesNothing() async {
        await #expect(processExitsWith: .success) {
            // The first ones fill what OpenSSL and libevent keep for good.
            var before = (descriptors: 0, memory: 0)
            for round in 0..<6 {
                for number in 0..<100 {
                    let link = try Link(over: .tls)
                    link.peer.send("hello\n")
                    try #require(link.run { link.recorder.lineCount == 1 })
                    switch number % 5 {
                    case 0: link.peer.reset()
                    case 1: link.peer.finishSending(isTruncated: true)
                    case 2: link.connection?.close()
                    case 3:
                        // The loop keeps it until its end.
                        link.connection?.closeAfterFlush(within: .milliseconds(1))
                        try #require(link.run { link.recorder.end != nil })
                    default: link.connection = nil
                    }
                    link.settle(.zero)
                }
                if round == 1 { before = (openDescriptors(), residentBytes()) }
            }
            try #require(openDescriptors() == before.descriptors)
            // 400 connections at some ten KB each would be more than this.
            try #require(residentBytes() - before.memory < 3_000_000)
        }
    }
}
