import COpenSSL
import Glibc

/// What the generator's ends of TLS share. It trusts whoever is there: it started the daemon itself.
final class SecureClient {
    fileprivate let context: OpaquePointer

    init() throws {
        guard let context = SSL_CTX_new(TLS_client_method()) else { throw BenchError("no memory for TLS") }
        self.context = context
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_3_VERSION), nil)
        SSL_CTX_ctrl(
            context, SSL_CTRL_MODE, Int(SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER), nil)
        // One recv for all records that are there.
        SSL_CTX_ctrl(context, SSL_CTRL_SET_READ_AHEAD, 1, nil)
    }

    deinit {
        SSL_CTX_free(context)
    }
}

/// The generator's end of one TLS connection, on a socket that it does not own.
final class SecureEnd {
    private let ssl: OpaquePointer

    /// Shakes hands on a blocking socket.
    init(_ client: SecureClient, descriptor: Int32) throws {
        guard let ssl = SSL_new(client.context), SSL_set_fd(ssl, descriptor) == 1 else {
            throw BenchError("no memory for TLS")
        }
        self.ssl = ssl
        guard SSL_connect(ssl) == 1 else { throw BenchError("the daemon does not shake hands") }
    }

    deinit {
        SSL_free(ssl)
    }

    /// As `send(2)`.
    func send(_ bytes: UnsafeRawBufferPointer) -> Int {
        result(SSL_write(ssl, bytes.baseAddress, Int32(clamping: bytes.count)))
    }

    /// As `recv(2)`.
    func receive(into start: UnsafeMutablePointer<UInt8>, _ size: Int) -> Int {
        result(SSL_read(ssl, start, Int32(clamping: size)))
    }

    /// Whether more has come than was received.
    var hasMore: Bool { SSL_has_pending(ssl) == 1 }

    private func result(_ count: Int32) -> Int {
        guard count <= 0 else { return Int(count) }
        switch SSL_get_error(ssl, count) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: errno = EAGAIN
        case SSL_ERROR_ZERO_RETURN: return 0
        default: errno = EPROTO
        }
        ERR_clear_error()
        return -1
    }
}
