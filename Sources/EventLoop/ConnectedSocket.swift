import Glibc

/// A connected TCP socket, from a ``Listener`` or a ``Connector``: non-blocking, close-on-exec, without delay, with
/// keepalives.
///
/// It owns its descriptor: make a ``Connection`` of it, or take the descriptor out; else it is closed.
public struct ConnectedSocket: ~Copyable {
    /// The descriptor, still owned by this value.
    public let descriptor: Int32
    /// The address of the peer.
    public let peer: SocketAddress

    /// Takes over a descriptor of a connected, non-blocking socket.
    public init(descriptor: Int32, peer: SocketAddress) {
        self.descriptor = descriptor
        self.peer = peer
    }

    deinit {
        close(descriptor)
    }

    /// Hands the descriptor over to the caller, who closes it from now on.
    public consuming func takeDescriptor() -> Int32 {
        let descriptor = descriptor
        discard self
        return descriptor
    }
}
