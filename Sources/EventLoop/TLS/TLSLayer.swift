import CLibEvent
import COpenSSL
import Glibc

/// TLS between the buffers of a socket and those of a connection's owner. It does no I/O: OpenSSL takes from one of
/// libevent's buffers and adds to another, and the connection sends what is there in one piece.
///
/// (libevent's own TLS bufferevent reads the socket until it is empty, writes each piece with a system call, and calls back
/// from inside calls; here the rules of a plain connection hold, one read and one write a turn.)
///
/// It is owned by one ``Transport``. Memory: while no record is under way, some ten kilobytes.
final class TLSLayer {
    enum Stage {
        case handshaking  // next: open, failed, refused
        case open  // next: failed
        case failed
        case refused  // the peer does not speak TLS and is told so plainly
    }

    /// What the peer sent, and what it is sent: the bufferevent's buffers.
    private let wireInput: OpaquePointer
    private let wireOutput: OpaquePointer
    /// What was decrypted, and what waits to be encrypted.
    let input: OpaquePointer
    let output: OpaquePointer

    private(set) var stage = Stage.handshaking
    /// The peer has said that nothing more comes (close_notify).
    private(set) var isInputClosed = false
    /// We have said so.
    private(set) var isOutputClosed = false
    /// How many bytes were added to the wire's output.
    private(set) var producedBytes = 0

    let ssl: OpaquePointer
    private let side: Side
    private var hasSeenFirstByte = false
    /// What came since the handshake and was no data of the owner's, as OpenSSL's state machine and its alerts tell: new keys
    /// (TLS 1.3), twice where the peer asks for ours, and renegotiations, which are refused (TLS 1.2).
    private var sideMessages = 0
    /// Bytes that were decrypted and encrypted for the owner.
    private var carriedBytes = 0

    /// How many of them are taken in any case, and for how many bytes another. RFC 8446 (5.5) wants new keys after some
    /// 24 million records; who asks for them all the time costs work, and answers that nobody reads would take memory.
    private static let maxSideMessages = (atOnce: 64, bytesForAnother: 16_384)

    /// Which end this is. The context lives as long as the connection, since OpenSSL holds pointers into it.
    enum Side {
        case server(TLSServerContext)
        case client(TLSClientContext, host: String)
    }

    init(_ side: Side, wireInput: OpaquePointer, wireOutput: OpaquePointer) throws(TLSError) {
        self.side = side
        self.wireInput = wireInput
        self.wireOutput = wireOutput
        let context: TLSContext =
            switch side {
            case .server(let context): context
            case .client(let context, _): context
            }
        // Only a lack of memory fails here, which Swift answers with a trap everywhere.
        guard let ssl = SSL_new(context.handle), let input = evbuffer_new(), let output = evbuffer_new() else {
            preconditionFailure("no memory for a connection")
        }
        self.ssl = ssl
        self.input = input
        self.output = output
        SSL_set_bio(ssl, BufferBIO.make(on: wireInput), BufferBIO.make(on: wireOutput))
        // Unretained is right: the layer frees `ssl`, and nobody else calls OpenSSL with it. The index 0 is the application's.
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
        SSL_set_info_callback(ssl) { ssl, what, _ in
            // A message ends the machine's steps; these say nothing of how many there were.
            guard what & SSL_CB_LOOP == 0, let layer = SSL_get_ex_data(ssl, 0) else { return }
            Unmanaged<TLSLayer>.fromOpaque(layer).takeUnretainedValue().noteSideMessage()
        }
        switch side {
        case .server: SSL_set_accept_state(ssl)
        case .client(let context, let host):
            SSL_set_connect_state(ssl)
            try context.prepare(ssl, host: host)
        }
    }

    deinit {
        SSL_free(ssl)
        evbuffer_free(input)
        evbuffer_free(output)
    }

    var isHandshaking: Bool { stage == .handshaking }

    /// Whether the peer has sent anything.
    var hasHeardPeer: Bool { hasSeenFirstByte }

    /// The version and the cipher that were agreed on, e.g. `TLSv1.3 TLS_AES_128_GCM_SHA256`.
    var description: String {
        let cipher = SSL_CIPHER_get_name(SSL_get_current_cipher(ssl)).map { String(cString: $0) } ?? "-"
        return "\(String(cString: SSL_get_version(ssl))) \(cipher)"
    }

    /// Goes on with the handshake, as far as what has come allows.
    /// - Returns: whether it is finished.
    func advanceHandshake() throws(TLSError) -> Bool {
        guard stage == .handshaking else { return stage == .open }
        try checkFirstByte()
        let result = produce { SSL_do_handshake(ssl) }
        guard result != 1 else {
            if case .client(let context, _) = side {
                do throws(TLSError) { try context.checkPin(ssl) } catch { throw fail(error) }
            }
            stage = .open
            return true
        }
        guard SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ else { return false }
        throw fail(handshakeError())
    }

    /// A handshake begins with a byte of its own, and an alert with another. What begins otherwise is no TLS.
    private func checkFirstByte() throws(TLSError) {
        guard !hasSeenFirstByte else { return }
        var first: UInt8 = 0
        guard evbuffer_copyout(wireInput, &first, 1) == 1 else { return }
        hasSeenFirstByte = true
        guard first != UInt8(SSL3_RT_HANDSHAKE), first != UInt8(SSL3_RT_ALERT) else { return }
        let error = TLSError(.plainPeer, "the other side does not speak TLS")
        throw fail(error)
    }

    private func handshakeError() -> TLSError {
        let code = SSL_get_verify_result(ssl)
        // The last error is TLS's own; what made it fail stands before it.
        if ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_CERTIFICATE_VERIFY_FAILED, code != X509_V_OK {
            ERR_clear_error()
            if case .client(_, let host) = side { return .verification(code, host: host) }
            return .verification(code, host: nil)
        }
        return .openSSL("the handshake failed")
    }

    /// Answers a peer that does not speak TLS in its own way; nothing else is sent after it.
    func refusePlainly(_ answer: [UInt8]) {
        stage = .refused
        evbuffer_drain(output, evbuffer_get_length(output))
        evbuffer_add(wireOutput, answer, answer.count)
        producedBytes &+= answer.count
    }

    /// Decrypts what has come.
    func decrypt() throws(TLSError) {
        guard stage == .open, !isInputClosed else { return }
        while evbuffer_get_length(wireInput) > 0 || SSL_has_pending(ssl) == 1 {
            var space = iovec()
            let wanted = min(max(evbuffer_get_length(wireInput), 1_024), 16_384)
            // Only a lack of memory fails here, which Swift answers with a trap everywhere.
            guard evbuffer_reserve_space(input, wanted, &space, 1) == 1 else {
                preconditionFailure("no memory for input")
            }
            let result = produce { SSL_read(ssl, space.iov_base, Int32(clamping: space.iov_len)) }
            space.iov_len = Int(max(result, 0))
            evbuffer_commit_space(input, &space, 1)
            carriedBytes &+= space.iov_len
            let limit = Self.maxSideMessages
            guard sideMessages <= limit.atOnce + carriedBytes / limit.bytesForAnother else {
                throw fail(TLSError(.other, "the other side asks for new keys all the time"))
            }
            guard result <= 0 else { continue }
            switch SSL_get_error(ssl, result) {
            case SSL_ERROR_WANT_READ: return
            case SSL_ERROR_ZERO_RETURN:
                isInputClosed = true
                return
            default: throw fail(.openSSL("the other side broke TLS"))
            }
        }
    }

    /// Encrypts what waits.
    /// - Parameter isLast: says behind it that nothing more comes.
    func encrypt(isLast: Bool) throws(TLSError) {
        guard stage == .open, !isOutputClosed else { return }
        while true {
            let count = min(evbuffer_get_length(output), Int(SSL3_RT_MAX_PLAIN_LENGTH))
            guard count > 0, let start = evbuffer_pullup(output, count) else { break }
            let written = produce { SSL_write(ssl, start, Int32(count)) }
            guard written > 0 else { throw fail(.openSSL("TLS could not encrypt")) }
            evbuffer_drain(output, Int(written))
            carriedBytes &+= Int(written)
        }
        if isLast { sayGoodbye() }
    }

    /// Adds close_notify to the wire's output.
    func sayGoodbye() {
        guard stage == .open, !isOutputClosed else { return }
        isOutputClosed = true
        _ = produce { SSL_shutdown(ssl) }
        ERR_clear_error()
    }

    private func noteSideMessage() {
        if stage == .open { sideMessages &+= 1 }
    }

    /// Runs a call of OpenSSL's, and counts what it adds to the wire's output.
    private func produce(_ call: () -> Int32) -> Int32 {
        let before = evbuffer_get_length(wireOutput)
        ERR_clear_error()
        let result = call()
        producedBytes &+= evbuffer_get_length(wireOutput) &- before
        return result
    }

    private func fail(_ error: TLSError) -> TLSError {
        stage = .failed
        return error
    }

    /// What a peer is told that does not speak TLS; nil on a client's side.
    var plainAnswer: [UInt8]? {
        if case .server(let context) = side { context.plainAnswer } else { nil }
    }
}
