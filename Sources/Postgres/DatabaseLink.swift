import EventLoop

/// Keeps one connection to a database open: connects, sets the session up, and after a loss connects anew, waiting
/// longer after each failure.
///
/// Each session is set up by the same statements before anyone may use it, LISTEN first among them, so that whoever
/// then reads what it may have missed misses nothing. Everything happens on the loop's thread.
public final class DatabaseLink {
    /// Where a link stands.
    public enum State: Equatable, Sendable {
        /// Not started, or stopped.
        case stopped
        /// Connecting, or setting the session up.
        case connecting
        /// ``connection`` can be used.
        case ready
        /// Waiting before the next try.
        case waiting
    }

    /// Called with each new session after its set-up; read then what may have been missed.
    public var onReady: ((DatabaseConnection) -> Void)?
    /// Called when a session is lost and when a try fails; the link goes on by itself. After a loss, every pending
    /// completion of the session has failed before.
    public var onLost: ((DatabaseError) -> Void)?
    /// Called for each NOTIFY on a channel that the set-up listens to, the ones between set-up and ``onReady`` included.
    public var onNotification: ((_ channel: String, _ payload: String, _ pid: Int32) -> Void)?
    /// Called for the server's notices and warnings.
    public var onNotice: ((DatabaseNotice) -> Void)?

    /// Where the link stands.
    public private(set) var state = State.stopped
    /// The session, while the link is ready.
    public var connection: DatabaseConnection? { state == .ready ? session : nil }

    private let loop: EventLoop
    private let settings: ConnectionSettings
    private let setup: [String]
    private let silenceLimit: Duration?
    private let probeInterval: Duration?
    private var backoff: Backoff
    private var random: any RandomNumberGenerator
    private var session: DatabaseConnection?
    private var timer: EventLoop.Timer?
    private var readySince: ContinuousClock.Instant?

    /// Names a link; nothing is sent before ``start()``.
    ///
    /// - Parameters:
    ///   - loop: the loop that the sessions are on.
    ///   - settings: where the database is, and as whom to connect.
    ///   - setup: statements that each session begins with, in order, one each; LISTEN first.
    ///   - silenceLimit: how long the server may be silent while an answer is due, see
    ///     ``DatabaseConnection/silenceLimit``.
    ///   - probeInterval: how often an idle session asks the server for a sign of life, so that a dead one is noticed
    ///     even where nobody asks anything, as in a listener. Needs a `silenceLimit` to be of use.
    ///   - backoff: how long to wait between tries.
    ///   - random: the source of the backoff's jitter.
    public init(
        on loop: EventLoop, _ settings: ConnectionSettings, setup: [String] = [],
        silenceLimit: Duration? = .seconds(30),
        probeInterval: Duration? = nil, backoff: Backoff = Backoff(),
        random: any RandomNumberGenerator = SystemRandomNumberGenerator()
    ) {
        self.loop = loop
        self.settings = settings
        self.setup = setup
        self.silenceLimit = silenceLimit
        self.probeInterval = probeInterval
        self.backoff = backoff
        self.random = random
    }

    /// Starts to connect; does nothing if the link is started.
    public func start() {
        guard state == .stopped else { return }
        connect()
    }

    /// Disconnects and stays so; pending completions fail, and no callback is called for it.
    public func stop() {
        state = .stopped
        timer?.cancel()
        let session = session
        self.session = nil
        session?.close()
    }

    /// Connects anew, since the server of this session takes no changes: another one may stand behind the same address by now,
    /// or this one may be set otherwise for new sessions. A session that has just begun is kept, so that this is not done all
    /// the time while it helps nothing.
    public func renew(after error: DatabaseError) {
        guard state == .ready, let readySince, loop.now - readySince >= Self.leastLife else { return }
        lose(error)
    }

    private static let leastLife = Duration.seconds(5)

    private func connect() {
        state = .connecting
        let connection = DatabaseConnection(on: loop, settings, silenceLimit: silenceLimit)
        session = connection
        connection.onNotification = { [weak self] channel, payload, pid in self?.onNotification?(channel, payload, pid)
        }
        connection.onNotice = { [weak self] notice in self?.onNotice?(notice) }
        connection.onEnded = { [weak self] error in self?.lose(error) }
        connection.open { [weak self] result in
            guard let self else { return }
            switch result {
            case .failure(let error): lose(error)
            case .success: setUp(connection)
            }
        }
    }

    private func setUp(_ connection: DatabaseConnection) {
        guard !setup.isEmpty else { return becomeReady(connection) }
        // All at once: completions come in order, and the first failure ends the session.
        for (index, sql) in setup.enumerated() {
            connection.execute(sql: sql) { [weak self, weak connection] result in
                guard let self, let connection, connection === session, connection.isOpen else { return }
                switch result {
                case .failure(let error): lose(error)
                case .success: if index == setup.count - 1 { becomeReady(connection) }
                }
            }
        }
    }

    private func becomeReady(_ connection: DatabaseConnection) {
        guard state == .connecting, connection === session else { return }
        state = .ready
        readySince = loop.now
        if let probeInterval {
            timer = EventLoop.Timer(on: loop, after: probeInterval, every: probeInterval) { [weak self] in
                guard let connection = self?.connection, connection.pendingCount == 0 else { return }
                // A failure is the session's end, which is told anyway.
                connection.execute(sql: "SELECT") { _ in }
            }
        }
        onReady?(connection)
    }

    private func lose(_ error: DatabaseError) {
        guard state == .connecting || state == .ready else { return }
        // A session that lived for a while was a success; one that dies at once is one more failure.
        if let readySince, loop.now - readySince >= backoff.limit { backoff.reset() }
        readySince = nil
        let session = session
        self.session = nil
        state = .waiting
        session?.close()
        timer = EventLoop.Timer(on: loop, after: backoff.next(using: &random)) { [weak self] in
            guard let self, state == .waiting else { return }
            connect()
        }
        onLost?(error)
    }
}
