import EventLoop
import Glibc
import TestSupport
import Testing

@Suite("how a connection lives and ends")
struct ConnectionLifeTests {
    @Test(
        "close inside a line ends at once: no further line, one end from the loop, the descriptor gone",
        arguments: Carrier.allCases)
    func closesInsideLine(over carrier: Carrier) throws {
        let link = try Link(over: carrier)
        link.recorder.reaction = { [unowned link] event, connection in
            guard case .line = event else { return }
            connection.close()
            #expect(link.recorder.end == nil)
            #expect(fcntl(link.socketDescriptor, F_GETFD) == -1)
        }
        link.peer.send("a\nb\nc\n")
        #expect(link.run { link.recorder.end != nil })
        link.settle()
        #expect(link.recorder.events == [.line([97]), .ended(.closed)])
    }

    enum Moment: CaseIterable { case line, gatheredLine, tooLong, drained, inputEnded, ended }
    enum Farewell: CaseIterable { case close, closeAfterFlush, release, closeAndRelease }

    @Test(
        "closing and releasing is safe in every event",
        arguments: Moment.allCases, Farewell.allCases.flatMap { end in Carrier.allCases.map { (end, $0) } })
    func farewells(moment: Moment, how: (farewell: Farewell, carrier: Carrier)) throws {
        let (farewell, carrier) = how
        var options = Connection.Options()
        options.maxLineBytes = 8
        options.outputHighWater = 1_000
        options.outputLowWater = 100
        let link = try Link(over: carrier, options: options, receiveBuffer: 4_096)
        weak let connection = link.connection
        let isDone = Box(false)
        link.recorder.reaction = { [unowned link] event, connection in
            switch (event, moment) {
            case (.line, .line), (.line, .gatheredLine), (.tooLong, .tooLong), (.drained, .drained),
                (.inputEnded, .inputEnded), (.ended, .ended):
                guard !isDone.value else { return }
                isDone.value = true
                if farewell == .close || farewell == .closeAndRelease { connection.close() }
                if farewell == .closeAfterFlush { connection.closeAfterFlush(within: .milliseconds(50)) }
                if farewell == .release || farewell == .closeAndRelease { link.connection = nil }
                connection.write(Array("after the end".utf8))
                connection.pauseReading()
                connection.resumeReading()
            default: break
            }
        }
        switch moment {
        case .line: link.peer.send("line\nnext\n")
        case .gatheredLine:
            link.peer.send("li")
            link.settle(.zero)
            link.peer.send("ne\nnext\n")
        case .tooLong: link.peer.send("much too long\nnext\n")
        case .drained: link.connection?.write([UInt8](repeating: 120, count: 5_000_000))
        case .inputEnded: link.peer.finishSending()
        case .ended: link.peer.reset()
        }
        #expect(
            link.run {
                link.peer.receive()
                return isDone.value
            })
        let isReleasedOnly = farewell == .release && moment != .ended
        if !isReleasedOnly {
            #expect(link.run { link.recorder.end != nil })
        }
        link.settle(.milliseconds(5))
        #expect(
            link.recorder.events.filter { if case .ended = $0 { true } else { false } }.count
                == (isReleasedOnly ? 0 : 1))
        if case .ended = link.recorder.events.last {} else { #expect(isReleasedOnly) }
        link.connection = nil
        #expect(connection == nil)
    }

    @Test("a connection keeps its delegate until it has told it the end, and no longer")
    func keepsItsDelegate() throws {
        let loop = try EventLoop()
        let accepted = Box<Connection?>(nil)
        let listener = try Listener(on: loop, host: "127.0.0.1", port: 0) {
            accepted.value = Connection(on: loop, socket: $0)
        }
        let peer = try RawSocket(connectingTo: listener.port)
        #expect(loop.run(until: { accepted.value != nil }, timeout: .seconds(60)))
        weak var kept: Recorder?
        do {
            let recorder = Recorder()
            accepted.value?.start(delegate: recorder)
            kept = recorder
        }
        peer.send("anybody?\n")
        #expect(loop.run(until: { kept?.events.isEmpty == false }, timeout: .seconds(60)))
        accepted.value?.close()
        #expect(loop.run(until: { kept == nil }, timeout: .seconds(60)))
        #expect(
            loop.run(
                until: {
                    peer.receive()
                    return peer.isAtEnd
                }, timeout: .seconds(60)))
    }

    @Test(
        "the idle timeout ends a silent connection, and bytes in either direction put it off",
        arguments: Carrier.allCases)
    func idles(over carrier: Carrier) throws {
        var options = Connection.Options()
        options.idleTimeout = .milliseconds(500)
        let silent = try Link(over: carrier, options: options)
        let start = silent.loop.now
        #expect(silent.run { silent.recorder.end != nil })
        #expect(silent.recorder.end == .idleTimeout)
        #expect(silent.loop.now - start > .milliseconds(450))

        for isSending in [true, false] {
            // The full time after the last byte, not twice that.
            let isSoon = try isInTime(.milliseconds(900)) {
                try timeToIdle(over: carrier, options, isSending: isSending)
            }
            #expect(isSoon, "while \(isSending ? "writing" : "reading")")
        }
    }

    /// How long a connection whose idle timeout is half a second lives after the last of many bytes, or far too long where the
    /// machine stood still meanwhile, and no byte came in time.
    private func timeToIdle(over carrier: Carrier, _ options: Connection.Options, isSending: Bool) throws -> Duration {
        let busy = try Link(over: carrier, options: options)
        let start = busy.loop.now
        let ticks = EventLoop.Timer(on: busy.loop, after: .zero, every: .milliseconds(50)) {
            if isSending { busy.connection?.write([10]) } else { busy.peer.send("x\n") }
        }
        _ = busy.run { busy.loop.now - start > .milliseconds(1_200) || busy.recorder.end != nil }
        ticks.cancel()
        guard busy.recorder.end == nil else { return .seconds(60) }
        let last = busy.loop.now
        #expect(busy.run { busy.recorder.end != nil })
        #expect(busy.recorder.end == .idleTimeout)
        #expect(busy.loop.now - last > .milliseconds(400))
        return busy.loop.now - last
    }

    @Test("an idle timeout set later counts from then on", arguments: Carrier.allCases)
    func changesIdleTimeout(over carrier: Carrier) throws {
        let link = try Link(over: carrier)
        link.settle(.milliseconds(50))
        link.connection?.idleTimeout = .milliseconds(100)
        let start = link.loop.now
        #expect(link.run { link.recorder.end != nil })
        #expect(link.recorder.end == .idleTimeout)
        #expect(link.loop.now - start > .milliseconds(90))
    }

    @Test("a half-closed connection that nobody closes ends by the idle timeout", arguments: Carrier.allCases)
    func halfClosedIdles(over carrier: Carrier) throws {
        var options = Connection.Options()
        options.idleTimeout = .milliseconds(50)
        let link = try Link(over: carrier, options: options)
        link.peer.finishSending()
        #expect(link.run { link.recorder.end != nil })
        #expect(link.recorder.events == [.inputEnded(unterminated: 0), .ended(.idleTimeout)])
    }

    // In a process of its own, whose descriptors are nobody else's.
    @Test("2,000 connections that open, talk and end leave neither a descriptor nor an object behind")
    func leavesNothing() async {
        await #expect(processExitsWith: .success) {
            let descriptors = openDescriptors()
            weak var leftLoop: EventLoop?
            do {
                let loop = try EventLoop()
                leftLoop = loop
                let sessions = Box<[ObjectIdentifier: Session]>([:])
                let total = Box(0)
                let listener = try Listener(on: loop, host: "127.0.0.1", port: 0) { socket in
                    let session = Session(Connection(on: loop, socket: socket)) { session in
                        sessions.value[ObjectIdentifier(session)] = nil
                    }
                    sessions.value[ObjectIdentifier(session)] = session
                    total.value += 1
                    session.start()
                }
                for round in 0..<40 {
                    let peers = try (0..<50).map { _ in try RawSocket(connectingTo: listener.port) }
                    for (number, peer) in peers.enumerated() {
                        peer.send("hello\n")
                        switch (round + number) % 4 {
                        case 0: peer.finishSending()
                        case 1: peer.send("quit\n")
                        case 2: peer.send("drop\n")
                        default: break
                        }
                    }
                    try #require(loop.run(until: { total.value == (round + 1) * 50 }, timeout: .seconds(60)))
                    _ = loop.run(until: { false }, timeout: .milliseconds(2))
                    for peer in peers { round % 2 == 0 ? peer.hangUp() : peer.reset() }
                }
                try #require(loop.run(until: { sessions.value.isEmpty }, timeout: .seconds(60)))
                try #require(Session.count == 0)
                withExtendedLifetime(listener) {}
            }
            try #require(leftLoop == nil)
            try #require(openDescriptors() == descriptors)
        }
    }
}

/// What a server's session looks like: keeps its connection and is its delegate.
private final class Session: ConnectionDelegate {
    // Safe: this test's process has one thread that makes sessions.
    nonisolated(unsafe) static var count = 0
    private let connection: Connection
    private let over: (Session) -> Void

    init(_ connection: Connection, over: @escaping (Session) -> Void) {
        self.connection = connection
        self.over = over
        Self.count += 1
    }
    deinit { Self.count -= 1 }

    func start() { connection.start(delegate: self) }

    func lineReceived(_ line: Span<UInt8>, on connection: Connection) {
        connection.write(line)
        switch line.withUnsafeBufferPointer({ String(decoding: $0, as: UTF8.self) }) {
        case "quit": connection.closeAfterFlush(within: .milliseconds(100))
        case "drop": over(self)
        default: break
        }
    }
    func lineTooLong(on connection: Connection) {}
    func outputDrained(on connection: Connection) {}
    func inputEnded(on connection: Connection, unterminatedBytes: Int) { connection.close() }
    func ended(_ reason: Connection.EndReason, on connection: Connection) { over(self) }
}

/// How many sockets, and reserves of listeners, this process has open. (The test runtime opens an epoll of its own
/// whenever it likes.)
func openDescriptors() -> Int {
    guard let directory = opendir("/proc/self/fd") else { return -1 }
    defer { closedir(directory) }
    var count = 0
    while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        var target = [CChar](repeating: 0, count: 64)
        let length = readlink("/proc/self/fd/\(name)", &target, target.count)
        let text = String(decoding: target.prefix(max(0, length)).map(UInt8.init), as: UTF8.self)
        if text.hasPrefix("socket:") || text == "/dev/null" { count += 1 }
    }
    return count
}
