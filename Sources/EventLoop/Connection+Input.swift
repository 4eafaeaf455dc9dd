import CLibEvent
import Glibc

extension Connection {
    /// How many lines are delivered as they come, and how many at a time of those that are behind them: whoever sends more
    /// waits until the others had their turn.
    static let maxLinesAtOnce = (first: 8, further: 16)
    /// When a turn has taken so many lines as they came, each further connection has one line taken at once.
    static let maxLinesOfTurn = 64

    /// The most bytes of a line, its terminator not counted; a change counts from the next piece that arrives.
    public var maxLineBytes: Int {
        get { reader.maxLineBytes }
        set { reader.maxLineBytes = max(0, newValue) }
    }

    /// How many bytes of an unfinished line are kept; none of one that was told too long.
    public var unfinishedBytes: Int { reader.unterminatedBytes }

    /// Whether the beginning of a line was read and not its end.
    public var isInsideLine: Bool { reader.isInsideLine }

    /// How many bytes have come and were taken, of finished lines or not.
    public var receivedBytes: Int { readBytes }

    /// How many bytes have come and were taken, finished lines or not, and how many of those that were written the peer has
    /// acknowledged: what does not grow is a line on which nothing moves.
    public var movedBytes: Int { readBytes &+ (transport?.acknowledgedBytes(of: writtenBytes) ?? 0) }

    /// Holds the lines back, at once: none comes after the present one. What was read stays buffered, and the socket is
    /// read no further than one read. While paused, the idle time rests, and an end of the peer's goes unnoticed.
    public func pauseReading() {
        isReadingPaused = true
    }

    /// Delivers again, buffered lines first, from the loop and not inside this call.
    public func resumeReading() {
        guard isReadingPaused else { return }
        isReadingPaused = false
        resumeDelivery()
    }

    var mayDeliver: Bool { phase == .open && !isReadingPaused && !isOutputBlocked }

    /// Reads again when nothing stands in the way any more, buffered lines first.
    func resumeDelivery() {
        guard mayDeliver, !isDelivering, let transport else { return }
        if transport.hasInput || (hasInputEnded && !isInputEndTold) {
            wantsDelivery = true
            if yieldsToOthers { wantMoreTime() } else { wantAttention() }
        } else {
            updateReading()
        }
    }

    /// libevent has read something.
    func inputArrived() {
        if isIdleTimeoutShortened { applyTimeouts() }
        if phase == .finishing || phase == .lingering { hasDiscardedInput = true }
        if isHandshaking { return advanceHandshake() }
        if phase == .finishing || phase == .lingering { return discardInput() }
        // Only now, when more has come, is the socket taken out of epoll: a short pause costs no system call.
        guard mayDeliver, !wantsDelivery else { return setReading(false) }
        if yieldsToOthers {
            wantsDelivery = true
            return wantMoreTime()
        }
        let isTurnFull = (loop?.linesOfTurn ?? 0) >= Self.maxLinesOfTurn
        deliver(atMost: isTurnFull ? 1 : Self.maxLinesAtOnce.first)
    }

    /// Delivers buffered lines, and the end of the input behind them.
    func deliver(atMost portion: Int = maxLinesAtOnce.further) {
        wantsDelivery = false
        guard mayDeliver, !isDelivering, let transport else { return }
        guard let delegate else { return end(.closed) }
        if transport.tls != nil, !unseal(transport) { return }
        isDelivering = true
        let isUsedUp = deliverLines(from: transport.input, to: delegate, atMost: portion)
        isDelivering = false
        switch phase {
        case .ended: return transport.free()  // closed by the delegate
        case .finishing: return discardInput()
        default: break
        }
        guard mayDeliver else { return }
        if !isUsedUp {
            wantsDelivery = true
            setReading(false)
            wantMoreTime()
        } else if hasInputEnded, let truncation {
            end(.insecure(truncation))
        } else if hasInputEnded {
            tellInputEnded(to: delegate)
        } else {
            updateReading()
        }
    }

    /// - Returns: whether all lines were delivered; false as well when the delegate made it stop.
    private func deliverLines(
        from input: OpaquePointer, to delegate: any ConnectionDelegate, atMost count: Int
    ) -> Bool {
        var portion = count
        while mayDeliver {
            // The first stretch of memory in the buffer; asking for as much as it has moves nothing.
            let count = evbuffer_get_contiguous_space(input)
            guard count > 0, let start = evbuffer_pullup(input, count) else { return true }
            let chunk = UnsafeRawBufferPointer(start: start, count: count)
            var offset = 0
            let before = portion
            while mayDeliver, portion > 0, let event = reader.next(in: chunk, at: &offset) {
                portion -= 1
                switch event {
                case .line(let line): delegate.lineReceived(line.assumingMemoryBound(to: UInt8.self).span, on: self)
                case .gathered(let line): delegate.lineReceived(line.span, on: self)
                case .tooLong: delegate.lineTooLong(on: self)
                }
            }
            evbuffer_drain(input, offset)
            readBytes &+= offset
            loop?.linesOfTurn += before - portion
            if portion == 0 { return evbuffer_get_length(input) == 0 }
        }
        return false
    }

    private func tellInputEnded(to delegate: any ConnectionDelegate) {
        guard !isInputEndTold else { return }
        isInputEndTold = true
        if let idleTimeout = options.idleTimeout, let loop {
            // libevent's read timeout went with the reading.
            timer = EventLoop.Timer(on: loop, after: idleTimeout, every: idleTimeout) { [unowned self] in
                // Safe: the timer is this object's own and ends with it.
                if self.remainingIdleTime(of: idleTimeout) <= .zero { self.endIdle() }
            }
        }
        delegate.inputEnded(on: self, unterminatedBytes: reader.unterminatedBytes)
    }

    func discardInput() {
        if isHandshaking { return }  // That may still be finished, so that the last words can leave.
        transport?.discardInput()
    }

    /// libevent met the end of the input, an error or a timeout.
    func happened(_ what: Int16, errorNumber: Int32) {
        let what = Int32(what)
        if what & BEV_EVENT_READING != 0 { isReading = false }  // libevent has disabled it.
        if what & BEV_EVENT_ERROR != 0 {
            failed(what, errorNumber)
        } else if what & BEV_EVENT_TIMEOUT != 0 {
            what & BEV_EVENT_WRITING != 0 ? outputStalled() : idled()
        } else if what & BEV_EVENT_EOF != 0, what & BEV_EVENT_READING != 0 {
            hasInputEnded = true
            if isHandshaking { return end(.insecure(TLSError(.truncated, "the other side left in the handshake"))) }
            switch phase {
            case .lingering: end(.closed)
            case .open where mayDeliver && !wantsDelivery: deliver()
            default: break
            }
        }
    }

    private func failed(_ what: Int32, _ errorNumber: Int32) {
        if phase == .lingering { return end(.closed) }
        let pending = transport?.pendingErrorNumber() ?? 0
        let number = errorNumber == 0 || errorNumber == EAGAIN ? pending : errorNumber
        end(.failed(EventLoopError(call: what & BEV_EVENT_WRITING != 0 ? "writev" : "readv", number: number)))
    }

    private func idled() {
        guard phase == .open else { return updateReading() }
        // Not the peer's silence when it is not listened to; resuming begins a new idle time.
        guard mayDeliver, let idleTimeout = options.idleTimeout else { return }
        let remaining = remainingIdleTime(of: idleTimeout)
        guard remaining > .zero else { return endIdle() }
        // Output has left meanwhile: wait for the rest of the time, and for the whole of it after the next input.
        isIdleTimeoutShortened = true
        transport?.setTimeouts(
            read: timeval(remaining), write: options.writeTimeout.flatMap { loop?.commonTimeout($0) })
        updateReading()
    }

    /// Ends for idleness, unless the delegate ends the connection in its own way.
    private func endIdle() {
        delegate?.idleTimeoutPassed(on: self)
        if phase == .open { end(.idleTimeout) }
    }

    private func remainingIdleTime(of idleTimeout: Duration) -> Duration {
        let now = ContinuousClock.now
        // libevent writes a backlog without telling.
        if isBacklogged, hasPeerTakenMore() { lastOutput = now }
        return idleTimeout - (now - lastOutput)
    }

    func applyTimeouts() {
        isIdleTimeoutShortened = false
        guard let loop else { return }
        transport?.setTimeouts(
            read: options.idleTimeout.map { loop.commonTimeout($0) },
            write: options.writeTimeout.map { loop.commonTimeout($0) })
    }

    /// Reads the socket when it should be read.
    func updateReading() {
        switch phase {
        case .open: if mayDeliver || isHandshaking, !wantsDelivery, !hasInputEnded { setReading(true) }
        case .finishing, .lingering: if !hasInputEnded { setReading(true) }
        case .created, .ended: break
        }
    }

    func setReading(_ isEnabled: Bool) {
        guard isEnabled != isReading, let transport else { return }
        isReading = isEnabled
        if !transport.setReading(isEnabled), isEnabled {
            failure = failure ?? .failed(EventLoopError(call: "epoll_ctl"))
            wantAttention()
        }
    }
}
