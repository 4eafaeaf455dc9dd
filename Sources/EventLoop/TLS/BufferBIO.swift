import CLibEvent
import COpenSSL

/// Lets OpenSSL read from and write to libevent's buffers, where a socket would be otherwise.
enum BufferBIO {
    /// A BIO on a buffer that must outlive it.
    static func make(on buffer: OpaquePointer) -> OpaquePointer {
        // Only a lack of memory fails here, which Swift answers with a trap everywhere.
        guard let bio = BIO_new(method.handle) else { preconditionFailure("no memory for a connection") }
        BIO_set_data(bio, UnsafeMutableRawPointer(buffer))
        BIO_set_init(bio, 1)
        return bio
    }

    /// `@unchecked`: nothing changes it once it is made.
    private struct Method: @unchecked Sendable {
        let handle: OpaquePointer?
    }

    private static let method: Method = {
        let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "evbuffer")
        BIO_meth_set_read(method) { bio, bytes, count in
            BIO_clear_flags(bio, ieum_bio_flags_all_retries)
            let taken = evbuffer_remove(BufferBIO.buffer(of: bio), bytes, Int(max(count, 0)))
            guard taken <= 0 else { return taken }
            // The end of the stream is not told here: the connection knows what it means.
            BIO_set_flags(bio, ieum_bio_flags_retry_read)
            return -1
        }
        BIO_meth_set_write(method) { bio, bytes, count in
            BIO_clear_flags(bio, ieum_bio_flags_all_retries)
            return evbuffer_add(BufferBIO.buffer(of: bio), bytes, Int(max(count, 0))) == 0 ? count : -1
        }
        BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        return Method(handle: method)
    }()

    private static func buffer(of bio: OpaquePointer?) -> OpaquePointer? {
        BIO_get_data(bio).map { OpaquePointer($0) }
    }
}
