import CLibEvent
import COpenSSL
import Glibc
import TestSupport
import Testing

@testable import EventLoop

/// A value that closures share; confined to a test's thread.
final class Box<Value> {
    var value: Value
    init(_ value: Value) { self.value = value }
}

/// A pipe that closes its ends.
final class Pipe {
    let reader: Int32
    let writer: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        (reader, writer) = (ends[0], ends[1])
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
    }

    deinit {
        close(reader)
        close(writer)
    }

    func write(_ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { Glibc.write(writer, $0.baseAddress, $0.count) }
    }
}

/// What carries the bytes of a connection that is tested.
enum Carrier: String, Codable, Sendable, CaseIterable {
    case tcp, tls

    /// Our side's security, and a peer's that trusts it.
    func security() throws -> (ours: Connection.Security, peer: TLSLayer.Side?) {
        guard self == .tls else { return (.plain, nil) }
        let files = try TestCertificates.shared().server
        let server = try TLSServerContext(
            files: .init(certificate: files.certificate, key: files.key), protocolName: "ieum/1",
            plainAnswer: Array("speak TLS\n".utf8))
        let client = try TLSClientContext(trust: .pinned(files.fingerprint), protocolName: "ieum/1")
        return (.server(server), .client(client, host: "127.0.0.1"))
    }
}

/// TLS on a bare socket: the layer that is tested between two buffers and the socket's calls.
private final class RawTLS {
    let layer: TLSLayer
    let wireInput: OpaquePointer
    let wireOutput: OpaquePointer

    init(_ side: TLSLayer.Side) throws {
        wireInput = try #require(evbuffer_new())
        wireOutput = try #require(evbuffer_new())
        layer = try TLSLayer(side, wireInput: wireInput, wireOutput: wireOutput)
    }

    deinit {
        evbuffer_free(wireInput)
        evbuffer_free(wireOutput)
    }
}

/// The other end of a connection: a bare, non-blocking TCP socket, with TLS where it was given some.
final class RawSocket {
    private(set) var descriptor: Int32
    private(set) var received: [UInt8] = []
    private(set) var isAtEnd = false
    /// The other end has reset the connection.
    private(set) var isBroken = false
    /// Why TLS failed, if it did.
    private(set) var tlsError: TLSError?
    private var buffer = [UInt8](repeating: 0, count: 65_536)
    private var tls: RawTLS?

    struct Refused: Error { var number: Int32 }

    /// Connects to a listener of this machine; the backlog takes it, so no loop has to run.
    init(connectingTo port: UInt16, receiveBuffer: Int32? = nil, tls side: TLSLayer.Side? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        try #require(descriptor >= 0)
        if var size = receiveBuffer { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else {
            hangUp()
            throw Refused(number: errno)
        }
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        if let side { tls = try RawTLS(side) }
    }

    deinit { hangUp() }

    var text: String { String(decoding: received, as: UTF8.self) }

    /// Whether TLS is agreed on, or there is none.
    var isReady: Bool { tls.map { $0.layer.stage == .open } ?? true }

    /// Bytes that were sent and still lie in this process.
    var queuedBytes: Int { tls.map { evbuffer_get_length($0.wireOutput) } ?? 0 }

    /// Goes on with the handshake.
    func shakeHands() {
        guard let tls, tls.layer.isHandshaking else { return }
        receive()
        do throws(TLSError) { _ = try tls.layer.advanceHandshake() } catch { tlsError = error }
        flush()
    }

    private func flush() {
        guard let tls else { return }
        while evbuffer_get_length(tls.wireOutput) > 0, evbuffer_write(tls.wireOutput, descriptor) > 0 {}
    }

    /// Sends what fits.
    /// - Returns: how many bytes went.
    @discardableResult
    func send(_ bytes: some Collection<UInt8>) -> Int {
        let array = Array(bytes)
        if let tls {
            flush()
            // As a socket does whose buffer is full.
            guard queuedBytes < 65_536 else { return 0 }
            let part = array.prefix(65_536)
            evbuffer_add(tls.layer.output, Array(part), part.count)
            do throws(TLSError) { try tls.layer.encrypt(isLast: false) } catch { tlsError = error }
            flush()
            return part.count
        }
        let count = array.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        return max(count, 0)
    }

    func send(_ text: String) { send(text.utf8) }

    /// Takes what has come.
    func receive() {
        flush()
        while descriptor >= 0 {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count == 0 { isAtEnd = true }
            if count < 0, errno != EAGAIN { isBroken = true }
            guard count > 0 else { break }
            if let tls {
                evbuffer_add(tls.wireInput, buffer, count)
            } else {
                received.append(contentsOf: buffer[..<count])
            }
        }
        decrypt()
    }

    private func decrypt() {
        guard let tls, tls.layer.stage == .open else { return }
        do throws(TLSError) { try tls.layer.decrypt() } catch { tlsError = error }
        while case let count = evbuffer_remove(tls.layer.input, &buffer, buffer.count), count > 0 {
            received.append(contentsOf: buffer[..<Int(count)])
        }
    }

    /// Takes new keys for what it sends, as TLS 1.3 allows at any time.
    /// - Parameter isAsking: wants the other side to do the same.
    /// - Returns: false when there is no TLS, or it refuses.
    func renewKeys(isAsking: Bool) -> Bool {
        guard let tls else { return false }
        flush()
        // As a socket does whose buffer is full.
        guard queuedBytes < 65_536 else { return true }
        let kind = isAsking ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED
        guard SSL_key_update(tls.layer.ssl, kind) == 1, SSL_do_handshake(tls.layer.ssl) == 1 else { return false }
        flush()
        return true
    }

    /// Whether the other side has said, in TLS, that this is all.
    var hasHeardGoodbye: Bool { tls?.layer.isInputClosed ?? false }

    /// Tells the other side that nothing more comes.
    /// - Parameter isTruncated: without the word that TLS has for it.
    func finishSending(isTruncated: Bool = false) {
        if let tls, !isTruncated {
            tls.layer.sayGoodbye()
            flush()
        }
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Closes so that the other end sees a reset.
    func reset() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
        hangUp()
    }

    func hangUp() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }
}

/// Writes down what a connection tells, and does in its events what a test asks for.
final class Recorder: ConnectionDelegate {
    enum Event: Equatable {
        case line([UInt8])
        case tooLong
        case drained
        case inputEnded(unterminated: Int)
        case ended(Connection.EndReason)
    }

    var events: [Event] = []
    var keepsLines = true
    var lineCount = 0
    var reaction: ((Event, Connection) -> Void)?

    var lines: [String] {
        events.compactMap { if case .line(let bytes) = $0 { String(decoding: bytes, as: UTF8.self) } else { nil } }
    }
    var end: Connection.EndReason? {
        if case .ended(let reason) = events.last { reason } else { nil }
    }

    func lineReceived(_ line: Span<UInt8>, on connection: Connection) {
        lineCount += 1
        note(.line(keepsLines ? line.withUnsafeBufferPointer { Array($0) } : []), connection)
    }
    func lineTooLong(on connection: Connection) { note(.tooLong, connection) }
    func outputDrained(on connection: Connection) { note(.drained, connection) }
    func inputEnded(on connection: Connection, unterminatedBytes: Int) {
        note(.inputEnded(unterminated: unterminatedBytes), connection)
    }
    func ended(_ reason: Connection.EndReason, on connection: Connection) { note(.ended(reason), connection) }

    private func note(_ event: Event, _ connection: Connection) {
        if keepsLines || event != .line([]) { events.append(event) }
        reaction?(event, connection)
    }
}

/// A connection of ours with a bare socket at its other end.
final class Link {
    let loop: EventLoop
    let recorder = Recorder()
    let peer: RawSocket
    var connection: Connection?
    /// Our socket, to look at.
    private(set) var socketDescriptor: Int32 = -1

    /// Connects the two; the connection is started unless told otherwise, and then TLS is agreed on.
    init(
        over carrier: Carrier = .tcp, options: Connection.Options = .init(), receiveBuffer: Int32? = nil,
        isStarted: Bool = true, loop: EventLoop? = nil
    ) throws {
        let loop = try loop ?? EventLoop()
        self.loop = loop
        let security = try carrier.security()
        let accepted = Box<Connection?>(nil)
        let descriptor = Box<Int32>(-1)
        let listener = try Listener(on: loop, host: "127.0.0.1", port: 0) { socket in
            descriptor.value = socket.descriptor
            accepted.value = Connection(on: loop, socket: socket, options: options, security: security.ours)
        }
        peer = try RawSocket(connectingTo: listener.port, receiveBuffer: receiveBuffer, tls: security.peer)
        try #require(loop.run(until: { accepted.value != nil }, timeout: .seconds(60)))
        connection = accepted.value
        socketDescriptor = descriptor.value
        guard isStarted else { return }
        connection?.start(delegate: recorder)
        let isReady = loop.run(
            until: {
                peer.shakeHands()
                return peer.isReady && connection?.isHandshaking == false
            }, timeout: .seconds(60))
        try #require(isReady)
    }

    /// Runs the loop until a condition holds; false after ten seconds.
    func run(until condition: () -> Bool) -> Bool { loop.run(until: condition, timeout: .seconds(60)) }

    /// Runs the loop for some turns in which what is under way would happen.
    func settle(_ time: Duration = .milliseconds(20)) { _ = loop.run(until: { false }, timeout: time) }
}

/// Starts a thread; join it with `pthread_join`.
func spawn(_ body: @escaping @Sendable () -> Void) -> pthread_t {
    final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
    var thread = pthread_t()
    let context = Unmanaged.passRetained(Body(body)).toOpaque()
    let status = pthread_create(
        &thread, nil,
        { context in
            if let context { Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
            return nil
        }, context)
    precondition(status == 0, "no thread")
    return thread
}
