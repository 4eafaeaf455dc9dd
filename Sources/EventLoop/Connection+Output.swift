import CLibEvent
import Glibc

extension Connection {
    /// How many bytes were written by the owner and not yet taken by the system.
    public var pendingOutputBytes: Int {
        transport.map(\.pendingOutputBytes) ?? 0
    }

    /// Sends bytes; does nothing after the end or a close. They leave at the end of the loop's turn, or at once when much
    /// has gathered.
    public func write(_ bytes: UnsafeRawBufferPointer) {
        guard let transport, phase == .created || phase == .open, let start = bytes.baseAddress, !bytes.isEmpty else {
            return
        }
        // Only a lack of memory fails here, which Swift answers with a trap everywhere.
        guard evbuffer_add(transport.output, start, bytes.count) == 0 else {
            preconditionFailure("no memory for output")
        }
        writtenBytes &+= bytes.count
        wantAttention()
        guard pendingOutputBytes > options.outputHighWater else { return }
        if !isBacklogged, failure == nil {
            if transport.tls != nil { seal(transport) }
            if transport.wireOutputBytes > 0 { writeNow(transport) }
        }
        if pendingOutputBytes > options.outputHighWater { isOutputBlocked = true }
    }

    /// Sends bytes, see ``write(_:)-(UnsafeRawBufferPointer)``.
    public func write(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBytes { write($0) }
    }

    /// Sends bytes, see ``write(_:)-(UnsafeRawBufferPointer)``.
    public func write(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { write($0) }
    }

    /// Sends what has gathered. Only from the loop.
    func flush() {
        guard let transport else { return }
        if transport.tls != nil { seal(transport) }
        guard !isBacklogged else {
            if let failure { end(failure) }
            return
        }
        if transport.wireOutputBytes > 0 { writeNow(transport) }
        if let failure { return end(failure) }
        if transport.wireOutputBytes > 0 {
            isBacklogged = true
            _ = hasPeerTakenMore()  // The write timeout looks from here on.
            guard transport.setWriting(true) else { return end(.failed(EventLoopError(call: "epoll_ctl"))) }
        }
        outputProgressed()
    }

    private func seal(_ transport: Transport) {
        do throws(TLSError) {
            try transport.seal(isLast: phase == .finishing)
        } catch {
            failure = failure ?? .insecure(error)
        }
    }

    /// The output was written in part or whole, by ``flush()`` or by libevent. Only from the loop.
    func outputProgressed() {
        guard let transport else { return }
        let pending = pendingOutputBytes
        if isBacklogged {
            lastOutput = ContinuousClock.now
            if transport.wireOutputBytes == 0 {
                isBacklogged = false
                _ = transport.setWriting(false)
            }
        }
        if phase == .finishing, pending == 0 { return linger(transport) }
        guard isOutputBlocked, pending <= options.outputLowWater else { return }
        isOutputBlocked = false
        guard phase == .open else { return }
        delegate?.outputDrained(on: self)
        resumeDelivery()
    }

    private func writeNow(_ transport: Transport) {
        switch transport.writeNow() {
        case .wrote: if options.idleTimeout != nil { lastOutput = ContinuousClock.now }
        case .blocked: break
        case .failed(let error): failure = failure ?? .failed(error)
        }
    }

    /// Whether the peer has acknowledged any output since the last look.
    ///
    /// The system wakes a writer only when a third of its buffer is free: on a slow line that takes long, though bytes
    /// move all the time.
    func hasPeerTakenMore() -> Bool {
        guard let transport else { return false }
        let acknowledged = transport.acknowledgedBytes(of: writtenBytes)
        defer { acknowledgedBytes = acknowledged }
        return acknowledged != acknowledgedBytes
    }

    /// libevent could not write for the write timeout, and has given up writing.
    func outputStalled() {
        guard hasPeerTakenMore(), transport?.setWriting(true) ?? false else { return end(.writeTimeout) }
    }

    private func linger(_ transport: Transport) {
        if hasInputEnded { return end(.closed) }
        phase = .lingering
        transport.finishWriting()
    }
}
