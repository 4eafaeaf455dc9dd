import CLibPQ
import EventLoop

/// A connection on an event loop: many executions under way at once, answered in order, none ever waited for.
///
/// It runs in libpq's pipeline mode. Each execution ends in a sync of its own, so each is a transaction of its own
/// and an error aborts nothing but itself. A completion is called when the **commit** is known, not when the rows
/// are: what succeeded is durable, and an error at commit, such as a deferred constraint's, is the execution's error.
///
/// Everything happens on the loop's thread. Completions and callbacks are called from the loop, never from inside the
/// call that asked for them, and may call anything here, ``close()`` too.
/// Source: PostgreSQL, chapter "libpq", sections "Pipeline mode" and "Asynchronous command processing".
public final class DatabaseConnection {
    /// Takes one execution's rows, or why there are none. Kind `.connection` or `.timeout` means that nobody knows
    /// whether it was committed.
    public typealias Completion = (Result<QueryResult, DatabaseError>) -> Void

    /// Called once when the connection is lost, after every pending completion has failed; not after ``close()`` and
    /// not when ``open(_:)`` fails. A lost connection stays lost: make a new one.
    public var onEnded: ((DatabaseError) -> Void)?
    /// Called for each NOTIFY on a channel that this session listens to.
    public var onNotification: ((_ channel: String, _ payload: String, _ pid: Int32) -> Void)?
    /// Called for the server's notices and warnings.
    public var onNotice: ((DatabaseNotice) -> Void)?

    /// How long the server may send nothing at all while an answer is due; then the connection is lost, kind
    /// `.timeout`. Nil: as long as it likes.
    public let silenceLimit: Duration?

    private let loop: EventLoop
    private let settings: ConnectionSettings
    private var state = State.new
    private var watch: DescriptorWatch?
    private var silenceTimer: EventLoop.Timer?
    private var lastActivity: ContinuousClock.Instant
    private var noticeHandler: NoticeHandler?
    private var pending = Queue<PipelineUnit>()
    private var statements = StatementCache()

    private enum State {
        case new
        case opening(ConnectionOpening)
        case open(OpaquePointer)
        /// A call failed while the owner was calling us; the end is told from the loop.
        case breaking(OpaquePointer, DatabaseError)
        case ended
    }

    /// Names a connection; nothing is sent before ``open(_:)``.
    public init(on loop: EventLoop, _ settings: ConnectionSettings, silenceLimit: Duration? = nil) {
        self.loop = loop
        self.settings = settings
        self.silenceLimit = silenceLimit
        lastActivity = loop.now
    }

    deinit {
        disconnect()
        failPending(Self.closed)
    }

    /// Connects, within the settings' `connect_timeout`. May be called once; ``close()`` ends it without an answer.
    public func open(_ completion: @escaping (Result<Void, DatabaseError>) -> Void) {
        guard case .new = state else {
            loop.enqueue { completion(.failure(DatabaseError(.protocol, "the connection was opened before"))) }
            return
        }
        state = .opening(
            ConnectionOpening(on: loop, settings) { [weak self] result in
                guard let self else { return }
                do throws(DatabaseError) {
                    try begin(result.get())
                    completion(.success(()))
                } catch {
                    disconnect()
                    completion(.failure(error))
                }
            })
    }

    /// Whether executions can be sent.
    public var isOpen: Bool {
        if case .open = state { true } else { false }
    }

    /// How many executions have not been completed.
    public var pendingCount: Int { pending.count }

    /// The process that serves this connection; 0 when it is not open.
    public var backendPID: Int32 { openConnection.map(PQbackendPID) ?? 0 }

    /// Executes a statement, in a transaction of its own.
    ///
    /// The statement is prepared at its first use here, with its own types or else those of these parameters; from then
    /// on the parameters must be of exactly these types.
    public func execute(
        _ statement: Statement, _ parameters: ParameterList = ParameterList(), _ completion: @escaping Completion
    ) {
        submit(.one(completion), statements: 1, problem: statements.admit(statement, parameters)) { connection in
            let isConfirmed = prepare(statement, on: connection)
            return (isConfirmed ? nil : statement.name, sendPrepared(statement, parameters, on: connection))
        }
    }

    /// Executes several statements as one transaction, which the first error aborts.
    public func executeTogether(
        _ executions: [(statement: Statement, parameters: ParameterList)],
        _ completion: @escaping (Result<[QueryResult], DatabaseError>) -> Void
    ) {
        var problem: DatabaseError?
        for (statement, parameters) in executions where problem == nil {
            problem = statements.admit(statement, parameters)
        }
        submit(.together(completion), statements: executions.count, problem: problem) { connection in
            var unconfirmed: String?
            for (statement, _) in executions where !prepare(statement, on: connection) {
                unconfirmed = statement.name
            }
            let areSent = executions.allSatisfy { sendPrepared($0.statement, $0.parameters, on: connection) }
            return (unconfirmed, areSent)
        }
    }

    /// Executes SQL that is not worth preparing, one statement, in a transaction of its own; LISTEN and SET, say.
    public func execute(
        sql: String, _ parameters: ParameterList = ParameterList(), _ completion: @escaping Completion
    ) {
        let problem =
            sql.utf8.contains(0)
            ? DatabaseError(.protocol, "the SQL holds a NUL byte, where it would end unseen") : parameters.problem
        submit(.one(completion), statements: 1, problem: problem) { connection in
            let isSent = parameters.withCArguments { arguments in
                PQsendQueryParams(
                    connection, sql, arguments.count, arguments.types, arguments.values, arguments.lengths,
                    arguments.formats, 1) == 1
            }
            return (nil, isSent)
        }
    }

    /// Asks the server to give up the statement that it works on at the moment, from a thread of its own, since
    /// libpq connects and waits for that. Which execution it meets is seen from which one fails with kind `.cancelled`.
    public func cancel() {
        guard let connection = openConnection, let handle = CancelHandle(connection) else { return }
        BackgroundThread.start { try? handle.cancel() }
    }

    /// Disconnects at once. Pending completions fail, kind `.connection`, from the loop; ``onEnded`` is not called.
    public func close() {
        disconnect()
        state = .ended
        onEnded = nil
        failPending(Self.closed)
    }

    private static let closed = DatabaseError(.connection, "the connection was closed while an answer was due")
}

// MARK: - Sending

extension DatabaseConnection {
    private var openConnection: OpaquePointer? {
        if case .open(let connection) = state { connection } else { nil }
    }

    /// Sends a unit and its sync.
    ///
    /// - Parameter send: hands the unit's statements to libpq, and tells one that was not confirmed yet, and whether
    ///   libpq took them all.
    private func submit(
        _ purpose: PipelineUnit.Purpose, statements count: Int, problem: DatabaseError?,
        _ send: (OpaquePointer) -> (unconfirmed: String?, isSent: Bool)
    ) {
        let connection: OpaquePointer
        switch state {
        case .open(let open): connection = open
        case .breaking(_, let error):
            return pending.append(PipelineUnit(purpose, unsent: error))
        case .new, .opening, .ended:
            let unit = PipelineUnit(purpose, unsent: DatabaseError(.connection, "the connection is not open"))
            return loop.enqueue { unit.finish(lacking: nil) }
        }
        if let problem {
            // In its turn, so that completions keep the order of the calls.
            pending.append(PipelineUnit(purpose, unsent: problem))
            if pending.count == 1 { loop.enqueue { [weak self] in self?.finishUnsent() } }
            return
        }
        if pending.isEmpty { watchSilence() }
        let (unconfirmed, isSent) = send(connection)
        var unit = PipelineUnit(purpose, statements: count)
        unit.unconfirmedStatement = unconfirmed
        pending.append(unit)
        guard isSent, PQpipelineSync(connection) == 1 else { return breakLater(connection) }
        flush(connection)
    }

    /// Prepares a statement at its first use, in a unit of its own, so that no other's failure can abort it.
    /// - Returns: whether the preparation is known to have succeeded.
    private func prepare(_ statement: Statement, on connection: OpaquePointer) -> Bool {
        guard let types = statements.typesToPrepare(statement.name) else {
            return statements.isConfirmed(statement.name)
        }
        pending.append(PipelineUnit(.preparation(of: statement.name), statements: 1))
        let oids = types.map(\.rawValue)
        // A failure is seen by the execution that follows it on the same connection.
        if PQsendPrepare(connection, statement.name, statement.sql, Int32(oids.count), oids) == 1 {
            _ = PQpipelineSync(connection)
        }
        return false
    }

    private func sendPrepared(_ statement: Statement, _ parameters: ParameterList, on connection: OpaquePointer) -> Bool
    {
        parameters.withCArguments { arguments in
            PQsendQueryPrepared(
                connection, statement.name, arguments.count, arguments.values, arguments.lengths, arguments.formats, 1)
        } == 1
    }

    /// Sends what the socket takes, and watches for room while there is more.
    private func flush(_ connection: OpaquePointer) {
        let left = PQflush(connection)
        guard left >= 0 else { return breakLater(connection) }
        do throws(EventLoopError) {
            try watch?.setInterest(left == 0 ? .read : [.read, .write])
        } catch {
            breakLater(connection, DatabaseError(.connection, "the database's socket cannot be watched: \(error)"))
        }
    }

    /// Ends the connection from the loop, not inside the owner's call.
    private func breakLater(_ connection: OpaquePointer, _ error: DatabaseError? = nil) {
        guard case .open = state else { return }
        state = .breaking(connection, error ?? DatabaseError(connection: connection))
        watch?.cancel()
        loop.enqueue { [weak self] in
            guard let self, case .breaking(let connection, let error) = state else { return }
            // The server may have said why before it hung up.
            state = .open(connection)
            receive(connection)
            if isOpen { end(error) }
        }
    }
}

// MARK: - Receiving

extension DatabaseConnection {
    private func begin(_ connection: OpaquePointer) throws(DatabaseError) {
        state = .open(connection)
        guard PQsetnonblocking(connection, 1) == 0, PQenterPipelineMode(connection) == 1 else {
            throw DatabaseError(connection: connection)
        }
        let handler = NoticeHandler { [weak self] notice in self?.onNotice?(notice) }
        handler.install(on: connection)
        noticeHandler = handler
        do throws(EventLoopError) {
            watch = try DescriptorWatch(on: loop, descriptor: PQsocket(connection), interest: .read) {
                [weak self] ready in
                guard let self, let connection = openConnection else { return }
                lastActivity = loop.now
                if ready == .read { receive(connection) }
                if isOpen { flush(connection) }
            }
        } catch {
            throw DatabaseError(.connection, "the database's socket cannot be watched: \(error)")
        }
    }

    /// Takes in what has arrived, and tells whoever it is for.
    private func receive(_ connection: OpaquePointer) {
        var isAlive: Bool
        repeat {
            isAlive = PQconsumeInput(connection) == 1
            unwatchClosedSocket(connection)
            takeResults(connection)
            if isOpen { takeNotifications(connection) }
            // TLS may hold decrypted bytes back for which the socket never becomes readable again.
        } while isAlive && isOpen && SecureInput.isWaiting(in: connection)
        guard isOpen, !isAlive || PQstatus(connection) == CONNECTION_BAD else { return }
        end(DatabaseError(connection: connection))
    }

    /// Ends the watch when libpq has closed the socket, before any callback runs: one may open another connection, whose
    /// socket then has the same number.
    private func unwatchClosedSocket(_ connection: OpaquePointer) {
        guard let watch, PQsocket(connection) != watch.descriptor else { return }
        watch.cancel()
        self.watch = nil
    }

    private func takeResults(_ connection: OpaquePointer) {
        // libpq puts a nil after the results of each statement; a second one means that there are no more.
        var isAfterResult = false
        finishUnsent()
        guard isOpen else { return }
        while PQisBusy(connection) == 0 {
            guard let result = PQgetResult(connection) else {
                if !isAfterResult { return }
                isAfterResult = false
                continue
            }
            unwatchClosedSocket(connection)
            let status = PQresultStatus(result)
            if status == PGRES_PIPELINE_SYNC {
                PQclear(result)
                isAfterResult = false
                guard finishFirst() else { return end(PipelineUnit.noResult) }
                guard isOpen else { return }
                continue
            }
            isAfterResult = true
            if pending.withFirst({ $0.receive(result) }) == nil {
                PQclear(result)
                return end(PipelineUnit.noResult)
            }
            if status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH {
                // libpq has no way out of a COPY in a pipeline: it gives this same result for ever.
                return end(DatabaseError(.connection, "the connection was given up because of a COPY"))
            }
        }
    }

    /// Completes the unit whose sync has come; false if it lacks results, so that we have lost our place.
    private func finishFirst() -> Bool {
        guard var unit = pending.popFirst(), !unit.isUnsent, unit.isComplete else { return false }
        if case .preparation(let name) = unit.purpose {
            if let failure = unit.failure { statements.fail(name, failure) } else { statements.confirm(name) }
        } else {
            unit.explain(by: statements.failure)
            unit.finish(lacking: nil)
        }
        finishUnsent()
        return true
    }

    private func finishUnsent() {
        while isOpen, pending.withFirst({ $0.isUnsent }) == true, let unit = pending.popFirst() {
            unit.finish(lacking: nil)
        }
    }

    private func takeNotifications(_ connection: OpaquePointer) {
        while isOpen, let notification = PQnotifies(connection) {
            let channel = String(cString: notification.pointee.relname)
            let payload = String(cString: notification.pointee.extra)
            let pid = notification.pointee.be_pid
            PQfreemem(notification)
            onNotification?(channel, payload, pid)
        }
    }
}

// MARK: - The end

extension DatabaseConnection {
    private func watchSilence() {
        lastActivity = loop.now
        guard let silenceLimit, silenceTimer?.isScheduled != true else { return }
        if let silenceTimer { return silenceTimer.reschedule(after: silenceLimit) }
        silenceTimer = EventLoop.Timer(on: loop, after: silenceLimit) { [weak self] in
            guard let self, isOpen, !pending.isEmpty else { return }
            let silence = loop.now - lastActivity
            if silence < silenceLimit {
                silenceTimer?.reschedule(after: silenceLimit - silence)
            } else {
                end(DatabaseError(.timeout, "the database was silent for \(silenceLimit) while an answer was due"))
            }
        }
    }

    /// The connection is lost: pending completions fail first, then the owner is told.
    private func end(_ error: DatabaseError) {
        disconnect()
        let onEnded = onEnded
        self.onEnded = nil
        while let unit = pending.popFirst() { unit.finish(lacking: error) }
        onEnded?(error)
    }

    private func failPending(_ error: DatabaseError) {
        guard !pending.isEmpty else { return }
        var units = pending
        pending = Queue()
        loop.enqueue {
            while let unit = units.popFirst() { unit.finish(lacking: error) }
        }
    }

    /// Lets go of the socket, its watch first.
    private func disconnect() {
        silenceTimer?.cancel()
        watch?.cancel()
        watch = nil
        switch state {
        case .open(let connection), .breaking(let connection, _): PQfinish(connection)
        case .opening(let opening): opening.cancel()
        case .new, .ended: break
        }
        state = .ended
    }
}
