import CLibEvent

/// TLS on a connection: its beginning, and what is decrypted.
extension Connection {
    /// Begins the handshake; called once, when the connection is started.
    func beginHandshake() {
        guard let loop else { return }
        let timeout = options.handshakeTimeout
        timer = EventLoop.Timer(on: loop, after: timeout * 2 / 5) { [unowned self] in
            // Safe, as below: the timer is this object's own and ends with it.
            self.silenceMet(rest: timeout * 3 / 5)
        }
        // A server waits for the client's first words.
        if transport?.tls?.plainAnswer == nil { loop.enqueue { [weak self] in self?.advanceHandshake() } }
    }

    /// A plain client waits for a word before it says anything itself.
    private func silenceMet(rest: Duration) {
        guard isHandshaking, let loop, let tls = transport?.tls else { return }
        guard tls.hasHeardPeer || tls.plainAnswer == nil else {
            return refusePlainly(TLSError(.plainPeer, "the other side has said nothing"))
        }
        timer = EventLoop.Timer(on: loop, after: rest) { [unowned self] in
            self.end(.insecure(TLSError(.timedOut, "the handshake took longer than \(self.options.handshakeTimeout)")))
        }
    }

    /// Goes on with the handshake. Only from the loop, never inside a call of the owner's.
    func advanceHandshake() {
        guard phase == .open || phase == .finishing, isHandshaking, let tls = transport?.tls else { return }
        let isFinished: Bool
        do throws(TLSError) {
            isFinished = try tls.advanceHandshake()
        } catch {
            return handshakeFailed(error)
        }
        if let transport, transport.wireOutputBytes > 0 || isFinished { wantAttention() }
        guard isFinished, phase == .open else { return }
        timer = nil
        delegate?.handshakeFinished(on: self)
        // What came with the last part of the handshake; and if it is nothing, the socket is read or rests as it should.
        if mayDeliver { deliver() } else if phase == .open { setReading(false) }
    }

    private func handshakeFailed(_ error: TLSError) {
        if error.kind == .plainPeer, transport?.tls?.plainAnswer != nil { return refusePlainly(error) }
        // The alert that says why.
        if let transport, transport.wireOutputBytes > 0, !isBacklogged { _ = transport.writeNow() }
        end(.insecure(error))
    }

    /// Tells a peer that does not speak TLS so, in plain text, and ends.
    private func refusePlainly(_ error: TLSError) {
        guard let tls = transport?.tls, let answer = tls.plainAnswer, let loop else { return end(.insecure(error)) }
        tls.refusePlainly(answer)
        refusal = .insecure(error)
        phase = .finishing
        keptUntilEnded = self
        timer = EventLoop.Timer(on: loop, after: .seconds(2)) { [unowned self] in self.end(.closed) }
        discardInput()
        updateReading()
        wantAttention()
    }

    /// Decrypts what has come.
    /// - Returns: false when that failed, and the connection is over.
    func unseal(_ transport: Transport) -> Bool {
        do throws(TLSError) {
            try transport.unseal()
        } catch {
            // What was whole before it is delivered no more: it is no longer clear whose it is.
            if transport.wireOutputBytes > 0, !isBacklogged { _ = transport.writeNow() }
            end(.insecure(error))
            return false
        }
        if let tls = transport.tls, tls.isInputClosed, !hasInputEnded {
            hasInputEnded = true
            setReading(false)
        }
        if transport.wireOutputBytes > 0, !isBacklogged { wantAttention() }
        return true
    }

    /// The input's end without close_notify: something may be missing.
    var truncation: TLSError? {
        guard let tls = transport?.tls, tls.stage == .open, !tls.isInputClosed else { return nil }
        return TLSError(.truncated, "the other side ended the connection without the end that TLS has for it")
    }
}
