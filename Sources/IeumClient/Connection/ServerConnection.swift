import Wire

/// One connection to a server, for programs that wait for each answer.
///
/// It connects, checks the greeting, sends commands (several before the first answer, if wanted) and hands out the
/// answers. All of it happens inside the calls, on the caller's thread. The first failure ends it: every later call throws
/// the same error, so what follows is another connection.
package final class ServerConnection {
    /// How long to wait.
    package struct Patience: Hashable, Sendable {
        /// For the connection and the greeting.
        package var connecting: Duration
        /// For an answer, and for each further line of a long one; while its bytes move, it takes its time.
        package var answer: Duration

        /// Waits this long for a connection, and for an answer.
        package init(connecting: Duration = .seconds(5), answer: Duration = .seconds(10)) {
            self.connecting = connecting
            self.answer = answer
        }
    }

    /// Where the server is.
    package let server: ServerAddress
    /// What the server said of itself.
    package var greeting: Greeting { core.greeting }
    /// When, by this machine's clock, the greeting came.
    package var greeted: Timestamp { core.greeted }
    /// The server's clock minus this machine's, as the greeting told it: an estimate, off by at most the time on the way.
    package var clockOffset: Duration { .microseconds(greeting.time.microseconds - greeted.microseconds) }

    private let core: Core
    private let transport: any BlockingTransport
    private let patience: Patience

    /// Connects and waits for the greeting.
    package convenience init(to server: ServerAddress, patience: Patience = Patience()) throws(ClientError) {
        try self.init(to: server, patience: patience) { (delegate) throws(ClientError) in
            try EventLoopTransport(to: server, within: patience.connecting, delegate: delegate)
        }
    }

    init(
        to server: ServerAddress, patience: Patience,
        transport makeTransport: (any LineTransportDelegate) throws(ClientError) -> any BlockingTransport
    ) throws(ClientError) {
        self.server = server
        self.patience = patience
        core = Core(patience: patience.connecting)
        transport = try makeTransport(core)
        try wait { core.isGreeted }
        // A reply holds a state and some words. More than the cap is taken from no server.
        transport.setMaxLineBytes(min(max(greeting.maxStateBytes, greeting.maxLineBytes), 64 << 20) + 4_096)
    }

    deinit {
        transport.close()
    }

    /// Sends a command and waits for its answer, the last line of which may be all of it.
    /// - Throws: ``ClientError/server(_:)`` when it is refused; the connection goes on then.
    package func request(_ command: Command) throws(ClientError) -> [ServerLine] {
        try answer(to: send(command))
    }

    /// Sends a command; others may be sent before its answer is asked for.
    package func send(_ command: Command) -> Int {
        var bytes: [UInt8] = []
        let id = core.session.send(command, patience: patience.answer, at: .now, into: &bytes)
        transport.send(bytes)
        return id
    }

    /// Waits for the answer to a command, which is handed out once.
    package func answer(to id: Int) throws(ClientError) -> [ServerLine] {
        try wait { core.answers[id] != nil }
        switch core.answers.removeValue(forKey: id) {
        case .success(let lines)?: return lines
        case .failure(let error)?: throw .server(error)
        case nil: throw .protocolViolation("there was no answer")
        }
    }

    /// Waits until the server tells of a change (`* CHANGED`).
    /// - Returns: the latest revision told of and not yet handed out, or nil when the time is over.
    package func nextChange(within timeout: Duration) throws(ClientError) -> Revision? {
        let end = ContinuousClock.now + timeout
        while core.changed == nil, core.session.failure == nil {
            let rest = end - .now
            guard rest > .zero else { return nil }
            try turn(until: { core.changed != nil }, within: rest)
        }
        defer { core.changed = nil }
        if let revision = core.changed { return revision }
        if let failure = core.session.failure { throw failure }
        return nil
    }

    /// Ends the connection.
    package func close() {
        transport.close()
        core.session.ended(.closed)
    }

    private func wait(until condition: () -> Bool) throws(ClientError) {
        while !condition() {
            if let failure = core.session.failure { throw failure }
            try turn(until: condition, within: .seconds(3_600))
        }
    }

    /// Lets events come until the condition holds, the session ends or its deadline comes, at most so long.
    private func turn(until condition: () -> Bool, within limit: Duration) throws(ClientError) {
        let timeout = core.session.deadline.map { min(limit, $0 - .now) } ?? limit
        _ = transport.run(until: { condition() || core.session.failure != nil }, timeout: max(timeout, .zero))
        core.session.timePassed(to: .now, movedBytes: transport.movedBytes)
        if core.session.failure != nil { transport.close() }
    }
}

extension ServerConnection {
    /// What the transport's events go to.
    private final class Core: LineTransportDelegate {
        var session: ClientSession
        var answers: [Int: Result<[ServerLine], WireError>] = [:]
        var changed: Revision?
        var greeted = Timestamp.earliest

        init(patience: Duration) {
            session = ClientSession(patience: patience, at: .now)
        }

        var isGreeted: Bool { session.greeting != nil }

        var greeting: Greeting {
            // The connection is handed out only after the greeting came.
            guard let greeting = session.greeting else { preconditionFailure("asked for a greeting before it came") }
            return greeting
        }

        func lineReceived(_ line: Span<UInt8>) {
            switch session.lineReceived(line, at: .now) {
            case .greeted: greeted = .now
            case .answered(let id, let lines): answers[id] = .success(lines)
            case .refused(let id, let error): answers[id] = .failure(error)
            case .changed(let revision): changed = max(changed ?? revision, revision)
            case nil: break
            }
        }

        func lineTooLong() {
            session.lineTooLong()
        }

        func ended(_ end: TransportEnd) {
            session.ended(end)
        }
    }
}
