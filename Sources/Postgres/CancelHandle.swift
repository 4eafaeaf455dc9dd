import CLibPQ

/// Asks a server to give up what one connection is doing; may be used from any thread.
///
/// It opens a connection of its own, sends the request and waits for the server to take it, so it can block as long as
/// the network does. It keeps no reference to the connection and may outlive it.
public final class CancelHandle: Sendable {
    // PQcancel only reads it, "can be safely invoked from a signal handler" and from any thread.
    nonisolated(unsafe) private let handle: OpaquePointer

    init?(_ connection: OpaquePointer) {
        guard let handle = PQgetCancel(connection) else { return nil }
        self.handle = handle
    }

    deinit {
        PQfreeCancel(handle)
    }

    /// Sends the request. That it was sent does not say that it came in time: look at the statement's own result,
    /// which fails with kind `.cancelled` if it did.
    public func cancel() throws(DatabaseError) {
        var message = [CChar](repeating: 0, count: 256)
        guard PQcancel(handle, &message, Int32(message.count)) == 1 else {
            let text = String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw DatabaseError(.connection, "the cancel request was not sent: \(text)")
        }
    }
}
