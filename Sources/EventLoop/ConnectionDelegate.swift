/// Hears what happens on a ``Connection``, on the loop's thread, one event at a time.
///
/// In every one of these calls the connection may be written to, paused, resumed, closed and released. None of them is
/// made from inside a call to the connection: they come from the loop.
public protocol ConnectionDelegate: AnyObject {
    /// TLS was agreed on, and the peer is who it must be. Told once, before any line; never on a plain connection.
    func handshakeFinished(on connection: Connection)

    /// A line came, without its terminator (`\n`, or `\r\n`).
    /// - Parameters:
    ///   - line: valid during the call only; mostly it is the receive buffer itself.
    ///   - connection: where it came.
    func lineReceived(_ line: Span<UInt8>, on connection: Connection)

    /// A line passed ``Connection/maxLineBytes``. Told once for such a line, when that is certain and before it has
    /// ended; the rest of it is dropped as it comes, and the next line is read as usual.
    func lineTooLong(on connection: Connection)

    /// ``Connection/isOutputBlocked`` turned false again.
    func outputDrained(on connection: Connection)

    /// The peer sends no more; all its full lines were delivered. Writing still works.
    /// - Parameters:
    ///   - connection: which one it is.
    ///   - unterminatedBytes: what came of a last line without its terminator, which was dropped.
    func inputEnded(on connection: Connection, unterminatedBytes: Int)

    /// No byte came or went for the idle timeout. The connection ends when this returns, unless it was closed here, as by
    /// ``Connection/closeAfterFlush(within:untilSilentFor:)`` after a word of farewell.
    func idleTimeoutPassed(on connection: Connection)

    /// The connection is over and its socket closed. Told exactly once, after ``Connection/start(delegate:)``, for
    /// whatever reason; nothing comes after it.
    func ended(_ reason: Connection.EndReason, on connection: Connection)
}

extension ConnectionDelegate {
    /// Does nothing.
    public func handshakeFinished(on connection: Connection) {}

    /// Says nothing.
    public func idleTimeoutPassed(on connection: Connection) {}
}
