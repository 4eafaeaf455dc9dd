import EventLoop
import Glibc
import Testing

/// A pipe that closes its ends.
final class Pipe {
    let reader: Int32
    let writer: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        try #require(Glibc.pipe(&ends) == 0)
        (reader, writer) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
    }

    deinit {
        close(reader)
        close(writer)
    }

    func write(_ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { Glibc.write(writer, $0.baseAddress, $0.count) }
    }

    func drain() {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while read(reader, &bytes, bytes.count) > 0 {}
    }
}

/// Starts a thread; join it with `pthread_join`.
func spawn(_ body: @escaping @Sendable () -> Void) -> pthread_t {
    final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
    var thread = pthread_t()
    let context = Unmanaged.passRetained(Body(body)).toOpaque()
    let status = pthread_create(
        &thread, nil,
        { context in
            if let context { Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
            return nil
        }, context)
    precondition(status == 0, "no thread")
    return thread
}
