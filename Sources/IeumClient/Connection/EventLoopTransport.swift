import EventLoop

/// TCP lines on libevent, on a loop of its own that runs only while its owner waits. The one file of this module that
/// knows EventLoop.
final class EventLoopTransport: BlockingTransport {
    private let loop: EventLoop
    private weak var delegate: (any LineTransportDelegate)?
    private var connector: Connector?
    private var connection: Connection?
    private var unsent: [UInt8] = []
    private var maxLineBytes = 65_536

    /// Begins to connect.
    /// - Parameter delegate: kept weakly.
    init(
        to server: ServerAddress, within timeout: Duration, delegate: any LineTransportDelegate
    ) throws(ClientError) {
        do throws(EventLoopError) {
            loop = try EventLoop()
        } catch {
            throw .unreachable(error.message)
        }
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
            let connection = Connection(on: loop, socket: socket, options: options)
            self.connection = connection
            connection.start(delegate: self)
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

    func close() {
        delegate = nil
        connector = nil
        connection = nil
    }

    func run(until condition: () -> Bool, timeout: Duration) -> Bool {
        loop.run(until: condition, timeout: timeout)
    }
}

extension EventLoopTransport: ConnectionDelegate {
    func lineReceived(_ line: Span<UInt8>, on connection: Connection) {
        delegate?.lineReceived(line)
    }

    func lineTooLong(on connection: Connection) {
        delegate?.lineTooLong()
    }

    func outputDrained(on connection: Connection) {}

    func inputEnded(on connection: Connection, unterminatedBytes: Int) {
        // Half a line is no line, and a server that says no more answers nothing that is sent to it.
        self.connection = nil
        delegate?.ended(.closed)
    }

    func ended(_ reason: Connection.EndReason, on connection: Connection) {
        self.connection = nil
        delegate?.ended(.closed)
    }
}
