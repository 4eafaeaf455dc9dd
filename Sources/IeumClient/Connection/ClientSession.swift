import Wire

/// Client side of one connection: lines in, answers out. A value without socket, clock or task; the time is an argument.
///
/// Replies come in the order of the commands, so the first command that waits is the one that a line belongs to. A line
/// that the protocol does not allow ends the session with a `protocolViolation`; no line traps.
struct ClientSession: Sendable {
    /// Names a command that was sent.
    typealias RequestID = Int

    /// What a line led to.
    enum Event: Hashable, Sendable {
        /// The server said who it is; commands may be sent.
        case greeted(Greeting)
        /// A command's whole answer: one line, or several with the `END` as the last.
        case answered(RequestID, [ServerLine])
        /// A command was refused.
        case refused(RequestID, WireError)
        /// There is something up to a revision.
        case changed(Revision)
    }

    private struct Request: Sendable {
        var id: RequestID
        var verb: Verb
        var maxLines: Int
        var patience: Duration
        var lines: [ServerLine] = []
    }

    /// What the server said of itself; nil before it did.
    private(set) var greeting: Greeting?
    /// Why the session is over; nil while it is not.
    private(set) var failure: ClientError?
    /// When the silence will have been too long; nil when nothing is awaited.
    private(set) var deadline: ContinuousClock.Instant?

    private var patience: Duration
    private var requests: ArraySlice<Request> = []
    private var nextID = 0
    private var farewell: WireError?
    private var movedBytes = 0  // when the deadline came last

    /// A session whose connection is being opened.
    /// - Parameter patience: how long the greeting may take from now on, the opening of the connection included.
    init(patience: Duration, at now: ContinuousClock.Instant) {
        self.patience = patience
        deadline = now + patience
    }

    /// Appends a command's line to `bytes`.
    /// - Parameter patience: how long the server may be silent once the answer is due; each line of the answer gives it
    ///   that long again, and so do bytes that move.
    mutating func send(
        _ command: Command, patience: Duration, at now: ContinuousClock.Instant, into bytes: inout [UInt8]
    ) -> RequestID {
        nextID += 1
        requests.append(Request(id: nextID, verb: command.verb, maxLines: command.maxLines, patience: patience))
        command.print(into: &bytes)
        if requests.count == 1, greeting != nil { deadline = now + patience }
        return nextID
    }

    /// A line came.
    mutating func lineReceived(_ line: Span<UInt8>, at now: ContinuousClock.Instant) -> Event? {
        guard failure == nil else { return nil }
        do throws(ClientError) {
            return try take(try parse(line), at: now)
        } catch {
            end(error)
            return nil
        }
    }

    /// A line came that was longer than any reply may be.
    mutating func lineTooLong() {
        end(.protocolViolation("a line is too long"))
    }

    /// The connection is over.
    mutating func ended(_ end: TransportEnd) {
        switch end {
        case .unreachable(let reason): self.end(.unreachable(reason))
        case .insecure(let failure): self.end(.insecure(failure))
        case .closed where farewell?.code == .tlsRequired:
            self.end(.insecure(SecurityFailure(.serverNeedsTLS, "the server speaks TLS, and was spoken to plainly")))
        case .closed: self.end(.connectionClosed(farewell))
        }
    }

    /// Time went by.
    ///
    /// A state may be a million bytes long, and a way slow: while bytes of it move, a thousand a second at least, nothing is
    /// overdue. A ping is short.
    /// - Parameter movedBytes: how many bytes moved on this connection so far, see ``LineTransport/movedBytes``.
    mutating func timePassed(to now: ContinuousClock.Instant, movedBytes: Int = 0) {
        guard let deadline, now >= deadline else { return }
        let patience = requests.first?.patience ?? patience
        let (moved, before) = (movedBytes, self.movedBytes)
        self.movedBytes = moved
        guard greeting != nil, let verb = requests.first?.verb, verb != .ping,
            Double(moved - before) >= patience / .milliseconds(1)
        else { return end(.timedOut(after: patience)) }
        self.deadline = now + patience
    }

    private mutating func end(_ error: ClientError) {
        guard failure == nil else { return }
        failure = error
        deadline = nil
        requests = []
    }

    private func parse(_ line: Span<UInt8>) throws(ClientError) -> ServerLine? {
        do throws(MalformedLine) {
            return try ServerLine.parse(line)
        } catch {
            throw .protocolViolation(error.description)
        }
    }

    private mutating func take(_ line: ServerLine?, at now: ContinuousClock.Instant) throws(ClientError) -> Event? {
        guard let line else {
            guard greeting != nil else { throw .protocolViolation("its first line is empty") }
            return nil
        }
        switch line {
        case .unrecognized where greeting != nil: return nil
        case .changed(let revision) where greeting != nil: return .changed(revision)
        case .bye(let reason):
            farewell = reason
            return nil
        case .greeting(let greeting) where self.greeting == nil: return try take(greeting, at: now)
        case .error(let error) where greeting == nil: throw .server(error)
        default: return try takeAnswer(line, at: now)
        }
    }

    private mutating func take(
        _ greeting: Greeting, at now: ContinuousClock.Instant
    ) throws(ClientError) -> Event {
        guard greeting.protocolVersion == Greeting.currentVersion else {
            throw .protocolViolation(
                "it speaks version \(greeting.protocolVersion), this program version \(Greeting.currentVersion)")
        }
        guard greeting.maxLineBytes >= 1_024, greeting.maxStateBytes >= 0 else {
            throw .protocolViolation("its limits are too narrow to work with")
        }
        self.greeting = greeting
        deadline = requests.first.map { now + $0.patience }
        return .greeted(greeting)
    }

    private mutating func takeAnswer(
        _ line: ServerLine, at now: ContinuousClock.Instant
    ) throws(ClientError) -> Event? {
        guard greeting != nil else { throw .protocolViolation("its first line is no greeting") }
        guard var request = requests.first else {
            throw .protocolViolation("it said something that nobody asked for")
        }
        if case .error(let error) = line {
            finishFirst(at: now)
            return .refused(request.id, error)
        }
        switch line.place(in: request.verb) {
        case .none: throw .protocolViolation("its reply to \(request.verb.rawValue) is that of another command")
        case .last:
            finishFirst(at: now)
            return .answered(request.id, request.lines + [line])
        case .line:
            guard request.lines.count < request.maxLines else {
                throw .protocolViolation("its reply to \(request.verb.rawValue) has more lines than were asked for")
            }
            // Out of the queue while it grows, so that its lines are not copied with every one that comes.
            requests[requests.startIndex].lines = []
            request.lines.append(line)
            requests[requests.startIndex] = request
            deadline = now + request.patience
            return nil
        }
    }

    private mutating func finishFirst(at now: ContinuousClock.Instant) {
        requests.removeFirst()
        deadline = requests.first.map { now + $0.patience }
    }
}

extension Command {
    /// The most lines of the answer before its last.
    fileprivate var maxLines: Int {
        switch self {
        case .pull(_, let limit), .history(_, _, let limit), .devices(_, let limit): limit ?? 10_000
        case .versions(let query): query.limit ?? 10_000
        case .get: 1
        case .help: 10_000
        default: 0
        }
    }
}

extension ServerLine {
    fileprivate enum Place {
        case line, last
    }

    /// Whether this can be a line, or the last line, of the answer to a command; nil when it can be neither.
    fileprivate func place(in verb: Verb) -> Place? {
        switch (verb, self) {
        case (.pull, .end), (.get, .end), (.history, .end), (.versions, .end), (.devices, .end), (.help, .end): .last
        case (.pull, .game), (.get, .game), (.history, .version), (.versions, .version), (.devices, .device),
            (.help, .help):
            .line
        case (.pull, .ok), (.get, .ok), (.history, .ok), (.versions, .ok), (.devices, .ok), (.help, .ok): nil
        case (_, .ok): .last
        default: nil
        }
    }
}
