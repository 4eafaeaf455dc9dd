/// Carries lines to one server and back: all that a platform has to bring.
///
/// Calls and events are on one thread, or one actor, of the owner's. An event never comes from inside a call.
protocol LineTransport: AnyObject {
    /// Sends bytes, whole lines; those from before the opening leave with it. Does nothing after the end.
    func send(_ bytes: [UInt8])
    /// Reads lines up to this length from now on; a longer one is told and dropped.
    func setMaxLineBytes(_ count: Int)
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
    /// The peer closed or reset the connection, or stopped to read.
    case closed
}

/// A transport that runs only while its owner waits for something: for programs that have nothing else to do.
protocol BlockingTransport: LineTransport {
    /// Lets events come until a condition holds or the time is over.
    /// - Returns: whether the condition holds.
    func run(until condition: () -> Bool, timeout: Duration) -> Bool
}
