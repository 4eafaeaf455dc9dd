import CLibEvent
import Glibc

/// What carries a connection's bytes: a bufferevent and its socket. The one place that knows which kind it is.
///
/// A TLS transport fits in here: `bufferevent_openssl_socket_new` in place of `bufferevent_socket_new`, ``writeNow()``
/// as `setWriting(true)` (that bufferevent writes at once when it is enabled), ``finishWriting()`` as `SSL_shutdown`.
/// Nothing else looks below the buffers.
///
/// It is owned by one ``Connection``, which calls ``shutDown()`` once and then ``free()`` once.
struct Transport {
    /// What came of an attempt to write.
    enum WriteResult {
        case wrote(Int)
        case blocked
        case failed(EventLoopError)
    }

    private let bufferEvent: OpaquePointer
    private let descriptor: Int32
    let input: OpaquePointer
    let output: OpaquePointer

    /// A plain TCP transport; it owns the descriptor from now on. Neither direction is enabled.
    init(plain socket: consuming ConnectedSocket, on loop: EventLoop) {
        guard let bufferEvent = bufferevent_socket_new(loop.base, socket.descriptor, 0),
            let input = bufferevent_get_input(bufferEvent), let output = bufferevent_get_output(bufferEvent)
        else { preconditionFailure("no memory for a connection") }
        self.bufferEvent = bufferEvent
        self.input = input
        self.output = output
        descriptor = socket.takeDescriptor()
        // libevent enables writing by itself, and then asks epoll for writability with every reply. Here the output is
        // written at the end of the turn, and writing is enabled only when the socket takes no more.
        bufferevent_disable(bufferEvent, Int16(EV_WRITE))
    }

    /// Calls a connection back; it must clear the calls by ``shutDown()`` before it goes.
    func setCallbacks(_ connection: Connection, lowWater: Int) {
        bufferevent_setwatermark(bufferEvent, Int16(EV_WRITE), lowWater, 0)
        bufferevent_setcb(
            bufferEvent,
            { _, context in Transport.connection(context)?.inputArrived() },
            { _, context in Transport.connection(context)?.outputProgressed() },
            { _, what, context in
                let number = errno  // Before anything else can set it.
                Transport.connection(context)?.happened(what, errorNumber: number)
            }, Unmanaged.passUnretained(connection).toOpaque())
    }

    private static func connection(_ context: UnsafeMutableRawPointer?) -> Connection? {
        // Unretained is right: a connection clears its callbacks in deinit at the latest.
        context.map { Unmanaged<Connection>.fromOpaque($0).takeUnretainedValue() }
    }

    func setTimeouts(read: timeval?, write: timeval?) {
        withOptionalPointer(to: read) { read in
            withOptionalPointer(to: write) { write in
                _ = bufferevent_set_timeouts(bufferEvent, read, write)
            }
        }
    }

    /// - Returns: false when the system refuses to watch the socket, by `errno`.
    func setReading(_ isEnabled: Bool) -> Bool {
        (isEnabled ? bufferevent_enable : bufferevent_disable)(bufferEvent, Int16(EV_READ)) == 0
    }

    /// Lets libevent write the output whenever the socket takes some.
    /// - Returns: false when the system refuses to watch the socket, by `errno`.
    func setWriting(_ isEnabled: Bool) -> Bool {
        (isEnabled ? bufferevent_enable : bufferevent_disable)(bufferEvent, Int16(EV_WRITE)) == 0
    }

    /// Writes as much of the output as the socket takes at once.
    func writeNow() -> WriteResult {
        // libevent freezes the front of a bufferevent's output except while it writes itself.
        evbuffer_unfreeze(output, 1)
        let count = evbuffer_write(output, descriptor)
        let number = errno
        evbuffer_freeze(output, 1)
        if count >= 0 { return .wrote(Int(count)) }
        return number == EAGAIN || number == EINTR ? .blocked : .failed(EventLoopError(call: "writev", number: number))
    }

    /// How many bytes the system holds that the peer has not acknowledged.
    func unacknowledgedBytes() -> Int {
        var count: Int32 = 0
        return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
    }

    /// Tells the peer that nothing more comes.
    func finishWriting() {
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// The error that the system holds ready for the socket.
    func pendingErrorNumber() -> Int32 {
        var number: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &number, &length)
        return number
    }

    /// Ends the callbacks and closes the socket; the buffers' memory stays valid until ``free()``.
    func shutDown() {
        bufferevent_setcb(bufferEvent, nil, nil, nil, nil)
        // Out of epoll before the descriptor's number can belong to somebody else.
        bufferevent_disable(bufferEvent, Int16(EV_READ | EV_WRITE))
        close(descriptor)
    }

    func free() {
        bufferevent_free(bufferEvent)
    }
}

private func withOptionalPointer<Value, Result>(to value: Value?, _ body: (UnsafePointer<Value>?) -> Result) -> Result {
    guard let value else { return body(nil) }
    return withUnsafePointer(to: value) { body($0) }
}
