import CLibEvent
import Glibc

/// A buffered TCP connection, plain or with TLS, that reads lines and writes bytes.
///
/// **Who owns what.** The owner keeps the connection; the connection keeps its loop, and its delegate until it has told it
/// the end (weakly would cost every call to the delegate more than the call). A delegate that is also the owner therefore
/// closes the connection when it wants to go. The loop keeps no connection, with two exceptions: after
/// ``closeAfterFlush(within:untilSilentFor:)`` until the end, and after ``close()`` until ``ConnectionDelegate/ended(_:on:)`` was told,
/// which is in the same or the next turn of the loop. A connection that is released otherwise closes its socket at once
/// and tells nobody.
///
/// **Reading.** Lines are delivered from the loop, in bounded portions, so that nobody starves the others. What is read
/// ahead of a pause is bounded by one read (4 KiB). While the output is blocked, reading rests by itself: a peer
/// that does not read is not read from either.
///
/// **Writing.** Writes gather and leave at the end of the turn of the loop in one system call.
///
/// **TLS.** The handshake begins with ``start(delegate:)`` and is bounded by ``Options/handshakeTimeout``. What is written
/// before its end waits for it; ``ConnectionDelegate/handshakeFinished(on:)`` tells it. The peer's close_notify is the end
/// of the input; an end without it, which an attacker can make, is an error once all whole lines were delivered.
public final class Connection {
    /// What may be chosen about a connection.
    public struct Options: Equatable, Sendable {
        /// The most bytes of a line, its terminator not counted.
        public var maxLineBytes = 1_048_576
        /// More pending output than this blocks the connection's reading.
        public var outputHighWater = 262_144
        /// As little pending output as this lets it read again.
        public var outputLowWater = 65_536
        /// How long the connection may be without bytes in either direction; nil for ever.
        public var idleTimeout: Duration?
        /// How long pending output may be without progress; nil for ever.
        public var writeTimeout: Duration? = .seconds(30)
        /// How long the handshake of TLS may take. A server hangs up after two fifths of it on a peer that says nothing.
        public var handshakeTimeout: Duration = .seconds(10)

        /// The defaults.
        public init() {}
    }

    /// Options that many connections have in common, see ``EventLoop/share(_:)``.
    final class SharedOptions {
        let value: Options

        init(_ value: Options) { self.value = value }
    }

    /// Why a connection is over.
    public enum EndReason: Equatable, Sendable {
        /// Closed on this side, by ``Connection/close()`` or ``Connection/closeAfterFlush(within:untilSilentFor:)``.
        case closed
        /// No byte in either direction for the idle timeout.
        case idleTimeout
        /// The peer did not take the output within the write timeout, or within the bound of a closing flush.
        case writeTimeout
        /// The peer reset the connection, or the system failed.
        indirect case failed(EventLoopError)
        /// TLS could not be agreed on, or was broken.
        indirect case insecure(TLSError)
    }

    /// Whether a connection speaks TLS, and as which side.
    public enum Security {
        /// Plain TCP.
        case plain
        /// TLS, as the server.
        case server(TLSServerContext)
        /// TLS, as a client of the server with this name or address.
        case client(TLSClientContext, host: String)
    }

    enum Phase: UInt8 {
        case created  // next: open, finishing, ended
        case open  // next: finishing, ended
        case finishing  // closeAfterFlush: the output leaves; next: lingering, ended
        case lingering  // all was sent, the peer's end is awaited; next: ended
        case ended
    }

    /// Hears the events; nil before the start and after the end.
    public private(set) var delegate: (any ConnectionDelegate)?

    // Of these there are as many as there are clients: what is small stands where others leave room.

    /// The other side's address.
    public let peer: SocketAddress
    /// Whether more output is pending than the high-water mark allows. The owner should produce no more then.
    public internal(set) var isOutputBlocked = false
    /// Whether the owner holds reading back.
    public internal(set) var isReadingPaused = false

    var phase = Phase.created
    var queue = Queue.none
    var options: Options { sharedOptions.value }
    private var sharedOptions: SharedOptions
    var loop: EventLoop?  // nil once ended, so that a pending end holds no loop
    var transport: Transport?  // nil once ended
    var isReading = false  // EV_READ is enabled
    var isBacklogged = false  // EV_WRITE is enabled: the socket took not all
    var reader: LineReader

    /// Whether its lines, be they few, wait like those of connections that send many: for the time that a turn has for them
    /// when the others had theirs. For peers of whom there may be a crowd that nobody knows.
    public var yieldsToOthers = false

    var isDelivering = false
    var wantsDelivery = false  // buffered lines or the input's end wait for the loop to deliver them
    var hasInputEnded = false
    var isInputEndTold = false
    var isIdleTimeoutShortened = false
    var hasDiscardedInput = false  // while closing, since the last look
    var refusal: EndReason?  // why a peer is being told plainly that it must speak TLS
    var failure: EndReason?  // met inside a call of the owner's, told from the loop

    var lastOutput: ContinuousClock.Instant
    var readBytes = 0
    var writtenBytes = 0
    var acknowledgedBytes = 0  // as seen at the last look
    var timer: EventLoop.Timer?  // bounds a handshake, a closing flush, or the idle time of a half-closed connection
    var keptUntilEnded: Connection?

    // Links of the loop's queue of connections that want its attention.
    // Unretained is right: deinit takes the connection out of the queue.
    var nextInQueue: Unmanaged<Connection>?
    var previousInQueue: Unmanaged<Connection>?

    /// Which of the loop's queues the connection stands in.
    enum Queue { case none, attention, greedy }

    /// Takes over a socket. Nothing is read before ``start(delegate:)``.
    ///
    /// Where TLS cannot even begin, which a host's odd name can cause, the connection ends once it is started.
    public init(
        on loop: EventLoop, socket: consuming ConnectedSocket, options: Options = Options(),
        security: Security = .plain
    ) {
        self.loop = loop
        sharedOptions = loop.share(options)
        peer = socket.peer
        reader = LineReader(maxLineBytes: options.maxLineBytes)
        lastOutput = loop.now
        let side: TLSLayer.Side? =
            switch security {
            case .plain: nil
            case .server(let context): .server(context)
            case .client(let context, let host): .client(context, host: host)
            }
        do throws(TLSError) {
            let transport = try Transport(socket, on: loop, tls: side)
            self.transport = transport
            transport.setCallbacks(self, lowWater: max(0, options.outputLowWater))
        } catch {
            failure = .insecure(error)
        }
        applyTimeouts()
    }

    deinit {
        leaveQueue()
        transport?.shutDown()
        transport?.free()
    }

    /// Begins to read, and to tell a delegate.
    public func start(delegate: any ConnectionDelegate) {
        guard phase == .created else { return }
        self.delegate = delegate
        phase = .open
        guard failure == nil else { return wantAttention() }
        if isHandshaking { beginHandshake() }
        updateReading()
    }

    /// Whether TLS is still being agreed on.
    public var isHandshaking: Bool { transport?.tls?.isHandshaking ?? false }

    /// The version and the cipher of TLS, e.g. `TLSv1.3 TLS_AES_128_GCM_SHA256`; nil without TLS and before its handshake.
    public var securityDescription: String? {
        guard let tls = transport?.tls, tls.stage == .open else { return nil }
        return tls.description
    }

    /// How long the connection may be without bytes in either direction; nil for ever. A change starts the time anew; after
    /// the end there is none.
    public var idleTimeout: Duration? {
        get { options.idleTimeout }
        set {
            guard let loop else { return }
            var changed = options
            changed.idleTimeout = newValue
            sharedOptions = loop.share(changed)
            lastOutput = ContinuousClock.now
            applyTimeouts()
        }
    }

    /// Closes at once; what is pending is not sent. ``ConnectionDelegate/ended(_:on:)`` follows from the loop.
    public func close() {
        guard phase != .ended, let loop else { return }
        tearDown()
        loop.endings.append(self)
    }

    /// Reads no more lines, sends what is pending, tells the peer the end and waits for the peer's, then closes.
    ///
    /// Waiting for the peer's end (while dropping what it still sends) keeps the system from resetting the connection
    /// before the peer has read the last reply. The loop keeps the connection meanwhile.
    /// - Parameters:
    ///   - bound: how long all that may take.
    ///   - silence: when nothing has come for so long and the peer's system has acknowledged everything, its end is waited
    ///     for no longer: nothing is left that a reset could destroy. nil: it is waited for.
    public func closeAfterFlush(within bound: Duration = .seconds(5), untilSilentFor silence: Duration? = nil) {
        guard phase != .ended, let loop else { return }
        let isClosing = phase == .finishing || phase == .lingering
        // What closes already can only be made to wait less.
        guard !isClosing || silence != nil else { return }
        let step = min(bound, silence ?? bound)
        let deadline = ContinuousClock.now + bound
        hasDiscardedInput = false
        timer = EventLoop.Timer(on: loop, after: step, every: step) { [unowned self] in
            // Safe: the timer is this object's own and ends with it.
            self.lookAtClosing(silence == nil ? nil : deadline)
        }
        guard !isClosing else { return }
        phase = .finishing
        keptUntilEnded = self
        if !isDelivering { discardInput() }
        updateReading()
        wantAttention()
    }

    /// - Parameter deadline: nil: it has passed.
    private func lookAtClosing(_ deadline: ContinuousClock.Instant?) {
        guard let deadline, ContinuousClock.now < deadline else {
            return end(pendingOutputBytes > 0 ? .writeTimeout : .closed)
        }
        let isDone = phase == .lingering && transport?.isAcknowledged ?? true
        if !hasDiscardedInput, isDone || isHandshaking { return end(.closed) }
        hasDiscardedInput = false
    }

    /// Ends the connection and tells so. Only from the loop, never inside a call of the owner's.
    func end(_ reason: EndReason) {
        guard phase != .ended else { return }
        tearDown()
        tellEnded(refusal ?? reason)
    }

    func tellEnded(_ reason: EndReason) {
        let delegate = delegate
        self.delegate = nil
        keptUntilEnded = nil
        delegate?.ended(reason, on: self)
    }

    private func tearDown() {
        phase = .ended
        timer = nil
        leaveQueue()
        transport?.shutDown()
        // Inside lineReceived the line still lies in the buffer; `deliver` frees it then.
        if !isDelivering { transport?.free() }
        transport = nil
        loop = nil
        keptUntilEnded = nil
    }

    func wantAttention() {
        guard queue == .none, let loop else { return }
        queue = .attention
        loop.attention.append(self)
    }

    /// More lines have come than are taken at once: the rest is for when the turn has seen to the others.
    func wantMoreTime() {
        guard queue != .greedy, let loop else { return }
        leaveQueue()
        queue = .greedy
        loop.greedy.append(self)
    }

    private func leaveQueue() {
        switch queue {
        case .none: return
        case .attention: loop?.attention.remove(self)
        case .greedy: loop?.greedy.remove(self)
        }
        queue = .none
    }

    /// The loop's turn ends: delivers what waits, then sends what has gathered.
    func attend() {
        queue = .none
        if let failure { return end(failure) }
        if wantsDelivery { deliver() }
        flush()
    }
}
