/// Carries lines to one server and back: all that a platform has to bring.
///
/// Calls and events are on one thread, or one actor, of the owner's. An event never comes from inside a call.
protocol LineTransport: AnyObject {
    /// Sends bytes, whole lines; those from before the opening leave with it. Does nothing after the end.
    func send(_ bytes: [UInt8])
    /// Reads lines up to this length from now on; a longer one is told and dropped.
    func setMaxLineBytes(_ count: Int)
    /// How many bytes have come on this connection, whole lines or not, and how many of those that were sent the peer has
    /// acknowledged; one that cannot tell the latter may leave them out.
    var movedBytes: Int { get }
    /// Ends the connection; no event comes any more.
    func close()
}

/// Hears what happens on a ``LineTransport``.
protocol LineTransportDelegate: AnyObject {
    /// A line came, without its line ending. It is valid during the call only.
    func lineReceived(_ line: Span<UInt8>)
    /// A line was too long; it was dropped.
    func lineTooLong()
    /// It is over, or never began; nothing comes after it. A line without its line feed was dropped.
    func ended(_ end: TransportEnd)
}

/// Why a transport ended.
enum TransportEnd: Hashable, Sendable {
    /// There was no connection, with the system's reason.
    case unreachable(String)
    /// There was no secure connection, or it was disturbed.
    case insecure(SecurityFailure)
    /// The peer closed or reset the connection, or stopped to read. So does one that breaks off without the end that TLS has
    /// for it: an answer that is missing is missing either way.
    case closed
}

/// A transport that runs only while its owner waits for something: for programs that have nothing else to do.
protocol BlockingTransport: LineTransport {
    /// Lets events come until a condition holds or the time is over.
    /// - Returns: whether the condition holds.
    func run(until condition: () -> Bool, timeout: Duration) -> Bool
}

/// A thread, or a serial queue, for one sync engine to live on; with ``LineTransport`` all that a platform has to bring.
///
/// ``post(_:)`` and ``end()`` may be called from anywhere, the other methods on the thread only.
protocol ConnectionThread: Sendable {
    /// Runs work on the thread, in the order of the calls of one thread, never inside the call.
    func post(_ work: @escaping @Sendable () -> Void)
    /// Ends the thread after what was posted before.
    func end()
    /// Begins to connect.
    /// - Parameter delegate: kept weakly; hears of everything on the thread.
    func connect(
        to server: ServerAddress, within timeout: Duration, delegate: any LineTransportDelegate
    ) throws(ClientError) -> any LineTransport
    /// Makes a timer that calls a closure on the thread; it ends with its release.
    func makeTimer(_ handler: @escaping () -> Void) -> any ThreadTimer
}

/// Calls a closure at a time.
protocol ThreadTimer: AnyObject {
    /// Sets the time, in place of the one before; nil: never.
    func schedule(after delay: Duration?)
}
