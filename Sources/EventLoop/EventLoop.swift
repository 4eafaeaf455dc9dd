import CLibEvent
import Glibc

/// One libevent loop: runs timers, watches, connections and deferred work on the thread that calls ``run()``.
///
/// Everything made on a loop is confined to that thread: the objects are plain, non-`Sendable` classes, their callbacks
/// ordinary closures, and there are no locks. The one way in from another thread is ``remote``.
///
/// The objects keep their loop alive; the loop keeps none of them (except, for the moment, a ``Connection`` that is
/// being flushed or closed). One turn of the loop is: wait for events and run their callbacks, run the deferred
/// work, send what the connections have gathered; then go on, for `greedyTime` at most, with those that sent more lines
/// than are taken at once, and those that yield to others. So whoever sends little waits for a short turn only, however many
/// send much.
///
/// Creating a loop makes the process ignore `SIGPIPE`, so that writing to a peer that left is an error and no death.
public final class EventLoop {
    /// The way in for other threads.
    public let remote: Remote

    let base: OpaquePointer
    private var wakeEvent: OpaquePointer?
    private var commonTimeouts: [Int64: UnsafePointer<timeval>] = [:]
    private var lastOptions: Connection.SharedOptions?

    private var deferredWork: [() -> Void] = []
    private var deferredBatch: [() -> Void] = []

    /// Connections with output to send or lines to deliver.
    var attention = AttentionQueue()
    /// Connections that sent more lines than are taken at once, or yield to others: they share what time a turn has for them.
    var greedy = AttentionQueue()
    /// How long a turn goes on with those, and how long it accepts new ones, when others may be waiting.
    static let greedyTime = Duration.microseconds(200)
    /// How many lines this turn has delivered.
    var linesOfTurn = 0
    /// Connections that were closed by their owner and still have to tell so. They hold no loop, so this is no cycle.
    var endings: [Connection] = []

    private var isRunning = false
    private var isStopRequested = false

    /// Makes a loop of its own; several may exist, each on a thread of its own.
    public init() throws(EventLoopError) {
        signal(SIGPIPE, SIG_IGN)
        let remote = try Remote()
        guard let configuration = event_config_new() else { throw EventLoopError(call: "event_config_new") }
        defer { event_config_free(configuration) }
        // One thread only: no locks in the base. The default coarse clock spares a system call in every turn.
        event_config_set_flag(configuration, Int32(EVENT_BASE_FLAG_NOLOCK.rawValue))
        guard let base = event_base_new_with_config(configuration) else {
            throw EventLoopError(call: "event_base_new_with_config")
        }
        self.base = base
        self.remote = remote
        try watchRemote()
    }

    deinit {
        remote.mailbox.close()
        if let wakeEvent { event_free(wakeEvent) }
        event_base_free(base)
    }

    /// The monotonic time, as `ContinuousClock` tells it.
    public var now: ContinuousClock.Instant { ContinuousClock.now }

    /// Runs until ``stop()``.
    public func run() {
        enter()
        defer { isRunning = false }
        while !isStopRequested { turn() }
    }

    /// Runs until a condition holds, ``stop()`` or a timeout; for tests and for clients that block.
    ///
    /// The condition is asked before the first turn and after each one.
    /// - Returns: whether the condition holds at the end.
    public func run(until condition: () -> Bool, timeout: Duration) -> Bool {
        if condition() { return true }
        enter()
        defer { isRunning = false }
        var isExpired = false
        // The timer only has to wake the loop up; it goes with this call, so that its closure does not outlive the flag.
        let timer = Timer(on: self, after: timeout) { isExpired = true }
        while !isStopRequested, !isExpired {
            turn()
            if condition() { return true }
        }
        timer.cancel()
        return condition()
    }

    /// Ends the present ``run()`` after the turn under way; does nothing when the loop does not run.
    public func stop() {
        isStopRequested = true
    }

    /// Runs work soon: after the present callback, in the order of the calls, before the loop waits again.
    ///
    /// Work that is enqueued by deferred work runs in the next turn, after a look at the sockets, so a chain of it
    /// starves nobody.
    public func enqueue(_ work: @escaping () -> Void) {
        deferredWork.append(work)
    }

    private func enter() {
        precondition(!isRunning, "EventLoop.run was called from one of the loop's own callbacks")
        isRunning = true
        isStopRequested = false
    }

    private func turn() {
        linesOfTurn = 0
        let mayBlock = deferredWork.isEmpty && attention.isEmpty && greedy.isEmpty && endings.isEmpty
        let status = event_base_loop(base, mayBlock ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK)
        precondition(status >= 0, "event_base_loop failed: \(EventLoopError(call: "event_base_loop"))")
        runDeferredWork()
        attendConnections()
        tellEndings()
    }

    private func attendConnections() {
        // No more than there are now: what they ask for in the course of it waits for the next turn.
        var count = attention.count
        while count > 0, let connection = attention.popFirst() {
            connection.attend()
            count -= 1
        }
        guard !greedy.isEmpty else { return }
        let end = now + Self.greedyTime
        repeat {
            guard let connection = greedy.popFirst() else { return }
            connection.attend()
        } while now < end
    }

    private func tellEndings() {
        guard !endings.isEmpty else { return }
        let ended = endings
        endings = []
        for connection in ended { connection.tellEnded(.closed) }
    }

    private func runDeferredWork() {
        guard !deferredWork.isEmpty else { return }
        swap(&deferredWork, &deferredBatch)
        for index in deferredBatch.indices {
            deferredBatch[index]()
        }
        deferredBatch.removeAll(keepingCapacity: deferredBatch.count <= 1024)
    }
}

extension EventLoop {
    private func watchRemote() throws(EventLoopError) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        let event = event_new(
            base, remote.mailbox.descriptor, Int16(EV_READ | EV_PERSIST),
            { _, _, context in
                guard let context else { return }
                let loop = Unmanaged<EventLoop>.fromOpaque(context).takeUnretainedValue()
                for work in loop.remote.mailbox.takeAll() { work() }
            }, context)
        guard let event, event_add(event, nil) == 0 else { throw EventLoopError(call: "event_add") }
        wakeEvent = event
    }

    /// The handle by which libevent keeps all timeouts of one duration in a queue instead of its heap; a plain
    /// duration when the 256 queues of a loop are taken.
    func commonTimeout(_ duration: Duration) -> timeval {
        let plain = timeval(duration)
        let key = Int64(plain.tv_sec) * 1_000_000 + Int64(plain.tv_usec)
        if let known = commonTimeouts[key] { return known.pointee }
        guard let handle = withUnsafePointer(to: plain, { event_base_init_common_timeout(base, $0) }) else {
            return plain
        }
        commonTimeouts[key] = handle
        return handle.pointee
    }

    /// Options for a connection to keep: those of the last one, where they are the same. A server's are, and a word is less
    /// than all of them.
    func share(_ options: Connection.Options) -> Connection.SharedOptions {
        if let lastOptions, lastOptions.value == options { return lastOptions }
        let shared = Connection.SharedOptions(options)
        lastOptions = shared
        return shared
    }
}

extension timeval {
    /// A duration rounded up to a whole microsecond, held between zero and about three years.
    init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        switch seconds {
        case ..<0: self.init(tv_sec: 0, tv_usec: 0)
        case 100_000_000...: self.init(tv_sec: 100_000_000, tv_usec: 0)
        default:
            let microseconds = max(0, (attoseconds + 999_999_999_999) / 1_000_000_000_000)
            self.init(tv_sec: Int(seconds) + Int(microseconds / 1_000_000), tv_usec: Int(microseconds % 1_000_000))
        }
    }
}
