import EventLoop
import Glibc

/// The generator's end of one connection: lines in, bytes out, with as few system calls as there can be.
///
/// It shares two cores with the servers that it measures, so it is leaner than a client should be: one `recv` a
/// readiness into a buffer that all sockets share, `send` at once, and epoll is asked for room to write only in the rare
/// case that there is none.
final class LineSocket {
    /// Called for every line, without its line feed. The bytes are valid during the call only.
    var onLine: (UnsafeBufferPointer<UInt8>) -> Void = { _ in }

    private let conductor: Conductor
    private let buffer: ReceiveBuffer
    private let descriptor: Int32
    private var watch: DescriptorWatch?
    private var secure: SecureEnd?
    private var unfinished: [UInt8] = []
    private var unsent: [UInt8] = []

    /// Connects to a port of this machine.
    /// - Parameters:
    ///   - number: connections of different numbers come from different loopback addresses, 4,000 from each, so that
    ///     ports do not run short.
    ///   - tls: for a daemon that speaks TLS.
    init(
        _ conductor: Conductor, _ buffer: ReceiveBuffer, port: UInt16, number: Int, tls: SecureClient? = nil
    ) throws {
        self.conductor = conductor
        self.buffer = buffer
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw BenchError.system("socket") }
        do {
            try connectSocket(descriptor, to: port, from: 0x7F00_0001 + UInt32(number / 4000))
            if let tls { secure = try SecureEnd(tls, descriptor: descriptor) }
            guard fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 else { throw BenchError.system("fcntl") }
            watch = try DescriptorWatch(on: conductor.loop, descriptor: descriptor, interest: .read) {
                // Safe, since the watch is this object's and is cancelled before it goes; and this is the hot path.
                [unowned(unsafe) self] ready in
                if ready == .write { flush() } else { receive() }
            }
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    deinit {
        close()
    }

    /// Closes the connection; what arrives after that is nobody's.
    func close() {
        guard watch != nil else { return }
        watch?.cancel()
        watch = nil
        Glibc.close(descriptor)
    }

    /// Sends bytes, now or as soon as there is room.
    func send(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { send($0) }
    }

    /// Sends bytes, now or as soon as there is room.
    func send(_ bytes: UnsafeRawBufferPointer) {
        guard unsent.isEmpty else { return unsent.append(contentsOf: bytes) }
        let count = write(bytes)
        if count == bytes.count { return }
        if count < 0 && errno != EAGAIN && errno != EINTR { return conductor.fail(BenchError.system("send")) }
        unsent = Array(bytes.dropFirst(max(count, 0)))
        setInterest([.read, .write])
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        secure?.send(bytes) ?? Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
    }

    private func flush() {
        let count = unsent.withUnsafeBytes { write($0) }
        if count < 0 && errno != EAGAIN && errno != EINTR { return conductor.fail(BenchError.system("send")) }
        unsent.removeFirst(max(count, 0))
        if unsent.isEmpty { setInterest(.read) }
    }

    private func setInterest(_ interest: DescriptorWatch.Interest) {
        do { try watch?.setInterest(interest) } catch { conductor.fail(error) }
    }

    private func receive() {
        guard let secure else { return take(recv(descriptor, buffer.start, buffer.size, 0)) }
        repeat {
            take(secure.receive(into: buffer.start, buffer.size))
        } while watch != nil && secure.hasMore
    }

    private func take(_ count: Int) {
        guard count > 0 else {
            if count < 0 && (errno == EAGAIN || errno == EINTR) { return }
            watch?.cancel()
            return conductor.fail(BenchError("the daemon closed a connection"))
        }
        var rest = UnsafeBufferPointer(start: buffer.start, count: count)
        while let start = rest.baseAddress, let found = memchr(start, Int32(UInt8(ascii: "\n")), rest.count) {
            let end = UnsafeRawPointer(found) - UnsafeRawPointer(start)
            let line = UnsafeBufferPointer(start: start, count: end)
            rest = UnsafeBufferPointer(start: start + end + 1, count: rest.count - end - 1)
            if unfinished.isEmpty {
                onLine(line)
            } else {
                unfinished.append(contentsOf: line)
                unfinished.withUnsafeBufferPointer(onLine)
                unfinished.removeAll(keepingCapacity: true)
            }
        }
        unfinished.append(contentsOf: rest)
    }
}

/// Memory that every socket reads into, since the process has one thread.
final class ReceiveBuffer {
    let start: UnsafeMutablePointer<UInt8>
    let size = 65_536

    init() {
        start = .allocate(capacity: size)
    }

    deinit {
        start.deallocate()
    }
}
