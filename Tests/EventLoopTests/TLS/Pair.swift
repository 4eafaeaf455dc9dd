import Glibc
import TestSupport
import Testing

@testable import EventLoop

/// Two connections of ours, a server's and a client's, on one loop.
final class Pair {
    let loop: EventLoop
    let server = Recorder()
    let client = Recorder()
    private(set) var serverSide: Connection?
    private(set) var clientSide: Connection?
    private(set) var isAgreed = false
    private var listener: Listener?
    private var connector: Connector?

    /// What the server says to whom it does not understand.
    static let plainAnswer = Array("speak TLS\n".utf8)

    static func serverContext(
        _ files: TestCertificates.Files, clientAuthorities: String? = nil
    ) throws -> TLSServerContext {
        try TLSServerContext(
            files: .init(certificate: files.certificate, key: files.key, clientAuthorities: clientAuthorities),
            protocolName: "ieum/1", plainAnswer: plainAnswer)
    }

    static func clientContext(
        _ trust: TLSClientContext.Trust, certificate: TestCertificates.Files? = nil, protocolName: String = "ieum/1"
    ) throws -> TLSClientContext {
        try TLSClientContext(
            trust: trust, protocolName: protocolName, certificate: certificate.map { ($0.certificate, $0.key) })
    }

    /// Connects the two, and lets them shake hands until both are agreed or the client's end has come.
    init(
        server context: TLSServerContext?, client: TLSClientContext?, host: String = "127.0.0.1",
        options: Connection.Options = .init()
    ) throws {
        let loop = try EventLoop()
        self.loop = loop
        let listener = try Listener(on: loop, host: "127.0.0.1", port: 0) { [unowned self] socket in
            let connection = Connection(
                on: loop, socket: socket, options: options, security: context.map { .server($0) } ?? .plain)
            serverSide = connection
            connection.start(delegate: server)
        }
        self.listener = listener
        connector = Connector(on: loop, host: "127.0.0.1", port: listener.port, timeout: .seconds(5)) {
            [unowned self] result in
            guard case .success(let socket) = consume result else { return }
            let connection = Connection(
                on: loop, socket: socket, options: options,
                security: client.map { .client($0, host: host) } ?? .plain)
            clientSide = connection
            connection.start(delegate: self.client)
        }
        isAgreed =
            run { [unowned self] in
                self.client.end != nil
                    || (clientSide?.securityDescription != nil && serverSide?.securityDescription != nil)
            } && self.client.end == nil
    }

    /// Why TLS failed on the client's side.
    var clientFailure: TLSError.Kind? { kind(client.end) }
    /// Why TLS failed on the server's side.
    var serverFailure: TLSError.Kind? { kind(server.end) }

    private func kind(_ end: Connection.EndReason?) -> TLSError.Kind? {
        if case .insecure(let error) = end { error.kind } else { nil }
    }

    /// Runs the loop until a condition holds; false after ten seconds.
    func run(until condition: () -> Bool) -> Bool { loop.run(until: condition, timeout: .seconds(60)) }

    /// Sends a line from the client, and tells whether the server got it and the client the answer.
    func talks() -> Bool {
        server.reaction = { event, connection in
            if case .line(let line) = event { connection.write(line + [10]) }
        }
        clientSide?.write(Array("ping\n".utf8))
        return run { self.client.lines.last == "ping" || self.client.end != nil } && client.end == nil
    }
}
