import CLibEvent
import Glibc

/// What carries a connection's bytes: a bufferevent with its socket, and TLS where there is some. The one place that knows.
///
/// ``input`` and ``output`` are the owner's side. On a plain connection they are the bufferevent's own buffers and nothing
/// lies between; with TLS, ``seal(isLast:)`` and ``unseal()`` carry bytes across, and everything else (the socket, its
/// timeouts, what the system holds) looks at the wire's side and is the same for both.
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
    private let wireInput: OpaquePointer
    private let wireOutput: OpaquePointer
    /// Owned by hand, so that copies of a plain transport count no references.
    private let layer: Unmanaged<TLSLayer>?
    private let descriptor: Int32

    /// What may be read by the owner.
    var input: OpaquePointer { tls?.input ?? wireInput }
    /// What the owner has written and the wire has not taken.
    var output: OpaquePointer { tls?.output ?? wireOutput }

    /// TLS; nil on a plain connection.
    var tls: TLSLayer? { layer?.takeUnretainedValue() }

    /// A transport over TCP, plain or with TLS; it owns the descriptor from now on. Neither direction is enabled.
    /// - Throws: when TLS has no use for the name of the host; the socket is closed then.
    init(_ socket: consuming ConnectedSocket, on loop: EventLoop, tls side: TLSLayer.Side?) throws(TLSError) {
        // Only a lack of memory fails here, which Swift answers with a trap everywhere.
        guard let bufferEvent = bufferevent_socket_new(loop.base, socket.descriptor, 0),
            let input = bufferevent_get_input(bufferEvent), let output = bufferevent_get_output(bufferEvent)
        else { preconditionFailure("no memory for a connection") }
        var tls: TLSLayer?
        do throws(TLSError) {
            if let side { tls = try TLSLayer(side, wireInput: input, wireOutput: output) }
        } catch {
            bufferevent_free(bufferEvent)
            throw error
        }
        self.bufferEvent = bufferEvent
        layer = tls.map { Unmanaged.passRetained($0) }
        wireInput = input
        wireOutput = output
        descriptor = socket.takeDescriptor()
        // libevent enables writing by itself, and then asks epoll for writability with every reply. Here the output is
        // written at the end of the turn, and writing is enabled only when the socket takes no more.
        bufferevent_disable(bufferEvent, Int16(EV_WRITE))
    }

    // MARK: TLS

    /// Bytes that the system has not taken, ready to be sent.
    var wireOutputBytes: Int { evbuffer_get_length(wireOutput) }

    /// Bytes that were written by the owner, or are ready to be sent, and the system has not taken.
    var pendingOutputBytes: Int {
        layer == nil ? evbuffer_get_length(output) : evbuffer_get_length(output) + evbuffer_get_length(wireOutput)
    }

    /// Whether anything is there to be delivered or decrypted.
    var hasInput: Bool {
        evbuffer_get_length(input) > 0 || (layer != nil && evbuffer_get_length(wireInput) > 0)
    }

    /// Makes what has come readable.
    func unseal() throws(TLSError) {
        try tls?.decrypt()
    }

    /// Makes what was written ready to be sent.
    /// - Parameter isLast: tells the peer behind it that nothing more comes, where TLS has a word for that.
    func seal(isLast: Bool) throws(TLSError) {
        try tls?.encrypt(isLast: isLast)
    }

    /// Drops what has come.
    func discardInput() {
        evbuffer_drain(wireInput, evbuffer_get_length(wireInput))
        if layer != nil { evbuffer_drain(input, evbuffer_get_length(input)) }
    }

    // MARK: The socket

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
        evbuffer_unfreeze(wireOutput, 1)
        let count = evbuffer_write(wireOutput, descriptor)
        let number = errno
        evbuffer_freeze(wireOutput, 1)
        if count >= 0 { return .wrote(Int(count)) }
        return number == EAGAIN || number == EINTR ? .blocked : .failed(EventLoopError(call: "writev", number: number))
    }

    /// How many bytes on the wire the peer has acknowledged.
    /// - Parameter written: how many bytes the owner has written in all.
    func acknowledgedBytes(of written: Int) -> Int {
        var held: Int32 = 0
        let unacknowledged = ioctl(descriptor, UInt(TIOCOUTQ), &held) == 0 ? Int(held) : 0
        return (tls?.producedBytes ?? written) &- evbuffer_get_length(wireOutput) &- unacknowledged
    }

    /// Whether the peer's system has all that was written, the end too where that was told.
    var isAcknowledged: Bool {
        var held: Int32 = 0
        return evbuffer_get_length(wireOutput) == 0 && (ioctl(descriptor, UInt(TIOCOUTQ), &held) != 0 || held == 0)
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
    ///
    /// With TLS the peer is told that this is the end, unless something that was written does not leave any more: then it
    /// is right that the peer sees a broken connection.
    func shutDown() {
        if let tls, pendingOutputBytes == 0 {
            tls.sayGoodbye()
            if wireOutputBytes > 0 { _ = writeNow() }
        }
        bufferevent_setcb(bufferEvent, nil, nil, nil, nil)
        // Out of epoll before the descriptor's number can belong to somebody else.
        bufferevent_disable(bufferEvent, Int16(EV_READ | EV_WRITE))
        close(descriptor)
    }

    func free() {
        layer?.release()
        bufferevent_free(bufferEvent)
    }
}

private func withOptionalPointer<Value, Result>(to value: Value?, _ body: (UnsafePointer<Value>?) -> Result) -> Result {
    guard let value else { return body(nil) }
    return withUnsafePointer(to: value) { body($0) }
}
