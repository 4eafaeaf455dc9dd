import EventLoop
import Glibc

/// A connection of somebody who means no good: it takes whatever comes, an end at any time included, and fails nobody.
final class RoughSocket {
    /// Called with what arrives; the bytes are valid during the call only.
    var onBytes: (UnsafeBufferPointer<UInt8>) -> Void = { _ in }
    /// Called when all that was sent has left and there is room for more, if ``wantsRoom`` is set.
    var onRoom: () -> Void = {}
    /// Called once when the other side ends the connection, or it does not come about; not after ``close(hard:)``.
    var onEnd: () -> Void = {}

    private let buffer: ReceiveBuffer
    private let descriptor: Int32
    private var watch: DescriptorWatch?
    private var unsent: ArraySlice<UInt8> = []

    /// Begins to connect to a port of this machine.
    /// - Parameter source: the address to come from, one of 127.0.0.0/8.
    init(_ loop: EventLoop, _ buffer: ReceiveBuffer, port: UInt16, from source: UInt32) throws {
        self.buffer = buffer
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC | O_NONBLOCK, 0)
        guard descriptor >= 0 else { throw BenchError.system("socket") }
        do {
            try connectSocket(descriptor, to: port, from: source)
            watch = try DescriptorWatch(on: loop, descriptor: descriptor, interest: .read) {
                // Safe: the watch is this object's own, and calls nothing once it is cancelled.
                [unowned(unsafe) self] ready in
                if ready == .write { roomCame() } else { receive() }
            }
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    deinit {
        close()
    }

    /// Whether it is neither closed nor ended.
    var isOpen: Bool { watch != nil }

    /// Whether ``onRoom`` is called.
    var wantsRoom = false {
        didSet { updateInterest() }
    }

    /// Whether what arrives is read.
    var reads = true {
        didSet { updateInterest() }
    }

    /// Closes the connection.
    /// - Parameter hard: with a reset, which leaves no port waiting behind.
    func close(hard: Bool = false) {
        guard watch != nil else { return }
        watch?.cancel()
        watch = nil
        if hard {
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        }
        Glibc.close(descriptor)
    }

    /// Sends bytes, now or as soon as there is room.
    func send(_ bytes: [UInt8]) {
        guard isOpen else { return }
        unsent += bytes
        flush()
    }

    private func flush() {
        guard !unsent.isEmpty else { return }
        let count = unsent.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        if count > 0 { unsent = count == unsent.count ? [] : unsent.dropFirst(count) }
        // Still connecting, or full; anything else comes with the reading.
        updateInterest()
    }

    private func roomCame() {
        flush()
        if unsent.isEmpty, wantsRoom, isOpen { onRoom() }
    }

    private func updateInterest() {
        let interest: DescriptorWatch.Interest = reads ? .read : []
        try? watch?.setInterest(unsent.isEmpty && !wantsRoom ? interest : interest.union(.write))
    }

    private func receive() {
        let count = recv(descriptor, buffer.start, buffer.size, 0)
        if count > 0 { return onBytes(UnsafeBufferPointer(start: buffer.start, count: count)) }
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        close()
        onEnd()
    }
}
