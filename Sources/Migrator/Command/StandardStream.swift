import Glibc
import Synchronization

/// Standard output and standard error. A full disk or a reader that went away must not end a migration that is under way.
enum StandardStream {
    /// The system's number of the first failure to write to standard output; 0 for none.
    static let outputFailure = Atomic<Int32>(0)

    /// Writes data. What fails is told at the end, by the exit code.
    static func output(_ text: String) {
        let failure = write(text, STDOUT_FILENO)
        if failure != 0 { _ = outputFailure.compareExchange(expected: 0, desired: failure, ordering: .relaxed) }
    }

    /// Writes talk. Where nobody hears it, nobody can be told.
    @Sendable static func errorOutput(_ text: String) {
        _ = write(text, STDERR_FILENO)
    }

    private static func write(_ text: String, _ descriptor: Int32) -> Int32 {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                if errno == EINTR { continue }
                guard errno == EAGAIN else { return errno }
                // Somebody made the pipe or terminal non-blocking.
                var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&ready, 1, -1)
            }
            rest = rest.dropFirst(max(count, 0))
        }
        return 0
    }
}
