import Dispatch
import EventLoop
import Foundation

/// Lines over TCP or TLS, by libevent and OpenSSL: on a loop of its own that runs only while its owner waits, or on the loop of an
/// ``EventLoopThread``. The one file of this module that knows EventLoop.
final class EventLoopTransport: BlockingTransport {
    private let loop: EventLoop
    private let server: ServerAddress
    private weak var delegate: (any LineTransportDelegate)?
    private var connector: Connector?
    private var connection: Connection?
    private var unsent: [UInt8] = []
    private var maxLineBytes = 65_536

    /// Begins to connect.
    /// - Parameter delegate: kept weakly.
    convenience init(
        to server: ServerAddress, within timeout: Duration, delegate: any LineTransportDelegate
    ) throws(ClientError) {
        do throws(EventLoopError) {
            self.init(on: try EventLoop(), to: server, within: timeout, delegate: delegate)
        } catch {
            throw .unreachable(error.message)
        }
    }

    /// Begins to connect.
    /// - Parameter delegate: kept weakly.
    init(
        on loop: EventLoop, to server: ServerAddress, within timeout: Duration, delegate: any LineTransportDelegate
    ) {
        self.loop = loop
        self.server = server
        self.delegate = delegate
        connector = Connector(on: loop, host: server.host, port: server.port, timeout: timeout) { [unowned self] in
            // Safe: the connector is this object's own, and calls nothing once it is released.
            self.connected($0)
        }
    }

    private func connected(_ result: consuming Result<ConnectedSocket, EventLoopError>) {
        connector = nil
        switch consume result {
        case .success(let socket):
            var options = Connection.Options()
            options.maxLineBytes = maxLineBytes
            let security: Connection.Security
            do throws(TLSError) {
                security = try server.security()
            } catch {
                delegate?.ended(.insecure(SecurityFailure(error)))
                return
            }
            let connection = Connection(on: loop, socket: socket, options: options, security: security)
            self.connection = connection
            connection.start(delegate: Ear(self))
            connection.write(unsent)
            unsent = []
        case .failure(let error):
            delegate?.ended(.unreachable(error.message))
        }
    }

    func send(_ bytes: [UInt8]) {
        if let connection {
            connection.write(bytes)
        } else if connector != nil {
            unsent += bytes
        }
    }

    func setMaxLineBytes(_ count: Int) {
        maxLineBytes = count
        connection?.maxLineBytes = count
    }

    var movedBytes: Int { connection?.movedBytes ?? 0 }

    func close() {
        delegate = nil
        connector = nil
        connection = nil
    }

    func run(until condition: () -> Bool, timeout: Duration) -> Bool {
        loop.run(until: condition, timeout: timeout)
    }
}

extension EventLoopTransport {
    private func connectionEnded(_ end: TransportEnd = .closed) {
        connection = nil
        delegate?.ended(end)
    }

    /// Hears the connection, which keeps it: the transport itself is kept by its owner alone.
    private final class Ear: ConnectionDelegate {
        private weak var transport: EventLoopTransport?

        init(_ transport: EventLoopTransport) { self.transport = transport }

        func lineReceived(_ line: Span<UInt8>, on connection: Connection) {
            transport?.delegate?.lineReceived(line)
        }

        func lineTooLong(on connection: Connection) {
            transport?.delegate?.lineTooLong()
        }

        func outputDrained(on connection: Connection) {}

        func inputEnded(on connection: Connection, unterminatedBytes: Int) {
            // Half a line is no line, and a server that says no more answers nothing that is sent to it.
            transport?.connectionEnded()
        }

        private var isSecure = false

        func handshakeFinished(on connection: Connection) { isSecure = true }

        func ended(_ reason: Connection.EndReason, on connection: Connection) {
            switch reason {
            case .insecure(let error) where !(isSecure && error.kind == .truncated):
                transport?.connectionEnded(.insecure(SecurityFailure(error)))
            default: transport?.connectionEnded()
            }
        }
    }
}

extension ServerAddress {
    /// What a connection needs for it.
    fileprivate func security() throws(TLSError) -> Connection.Security {
        guard isSecure else { return .plain }
        let trust: TLSClientContext.Trust =
            switch self.trust {
            case .system: .system
            case .authorities(let file): .authorities(file: file)
            case .pinned(let fingerprint): try .pinned(fingerprint.systemForm())
            }
        let context = try TLSClientContext(
            trust: trust, protocolName: "ieum/1", certificate: certificate.map { ($0.file, $0.key) })
        return .client(context, host: host)
    }
}

extension ServerTrust.Fingerprint {
    fileprivate func systemForm() throws(TLSError) -> CertificateFingerprint {
        guard let form = CertificateFingerprint(bytes: bytes) else { throw TLSError(.other, "no fingerprint") }
        return form
    }
}

extension SecurityFailure {
    fileprivate init(_ error: TLSError) {
        let reason: Reason =
            switch error.kind {
            case .file: .unusableFile
            case .certificateExpired: .certificateExpired
            case .certificateNotYetValid: .certificateNotYetValid
            case .wrongHost: .wrongHost
            case .unknownIssuer: .unknownIssuer
            case .pinMismatch: .fingerprintMismatch
            case .certificateInvalid: .certificateInvalid
            case .plainPeer: .serverIsPlain
            case .versionTooOld: .versionTooOld
            case .noCommonProtocol: .otherProtocol
            case .clientCertificateRequired: .clientCertificateRequired
            case .certificateRefused: .clientCertificateRefused
            case .timedOut, .truncated, .other: .disturbed
            }
        self.init(reason, error.message)
    }
}

/// A thread that runs a loop; it sleeps while there is nothing to do.
final class EventLoopThread: ConnectionThread {
    /// The loop. `@unchecked Sendable`: it is touched on its own thread only, by posted work and by what that work made.
    private final class Confined: @unchecked Sendable {
        let loop: EventLoop
        init(_ loop: EventLoop) { self.loop = loop }
    }

    private let confined: Confined
    private let remote: EventLoop.Remote

    /// Starts the thread.
    init(name: String) throws(ClientError) {
        let loop: EventLoop
        do throws(EventLoopError) {
            loop = try EventLoop()
        } catch {
            throw .unreachable(error.message)
        }
        let confined = Confined(loop)
        self.confined = confined
        remote = loop.remote
        let thread = Thread { confined.loop.run() }
        thread.name = name
        thread.start()
    }

    func post(_ work: @escaping @Sendable () -> Void) {
        remote.post(work)
    }

    func end() {
        let confined = confined
        remote.post { confined.loop.stop() }
    }

    func connect(
        to server: ServerAddress, within timeout: Duration, delegate: any LineTransportDelegate
    ) throws(ClientError) -> any LineTransport {
        EventLoopTransport(on: confined.loop, to: server, within: timeout, delegate: delegate)
    }

    func makeTimer(_ handler: @escaping () -> Void) -> any ThreadTimer {
        EventLoopTimer(EventLoop.Timer(on: confined.loop, after: .seconds(3_600), handler))
    }
}

private final class EventLoopTimer: ThreadTimer {
    private let timer: EventLoop.Timer

    init(_ timer: EventLoop.Timer) {
        self.timer = timer
        timer.cancel()
    }

    func schedule(after delay: Duration?) {
        guard let delay else { return timer.cancel() }
        timer.reschedule(after: delay)
    }
}
