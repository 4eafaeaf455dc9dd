import Foundation
import Synchronization
import TerminalText

/// Words for a person: data on standard output, talk on standard error.
enum Console {
    /// Why the first text that could not be written to standard output was not; nil where all were. It is told at the end, by the
    /// exit code: what a command did is done, whether its words arrive or not.
    static var outputFailure: Int32? {
        let number = firstFailure.load(ordering: .relaxed)
        return number == 0 ? nil : number
    }
    private static let firstFailure = Atomic<Int32>(0)

    static func output(_ text: String) {
        let number = write(Array(text.utf8), STDOUT_FILENO)
        if number != 0 { _ = firstFailure.compareExchange(expected: 0, desired: number, ordering: .relaxed) }
    }

    /// Talk as it is, without a name before it or an end of line behind it.
    static func talk(_ text: String) { write(text, STDERR_FILENO) }

    static func error(_ message: String, hint: String?) {
        // What was typed, or stands in the database, may be in it: none of it steers a terminal.
        let lines = ("ieumd: \(message)" + (hint.map { "\n\($0)" } ?? "")).replacing("\t", with: "    ")
            .split(separator: "\n", omittingEmptySubsequences: false).map { String($0).terminalSafe }
        write(lines.joined(separator: "\n") + "\n", STDERR_FILENO)
    }

    /// Standard output could not be written.
    struct Broken: Error {
        /// Why; `EPIPE` when nobody reads any more.
        var number: Int32
    }

    /// Bytes as they are, to standard output.
    static func data(_ bytes: [UInt8]) throws(Broken) {
        let number = write(bytes, STDOUT_FILENO)
        guard number == 0 else { throw Broken(number: number) }
    }

    /// A text; when it cannot be written there is nobody left to tell.
    private static func write(_ text: String, _ descriptor: Int32) {
        _ = write(Array(text.utf8), descriptor)
    }

    /// Writes everything at once, so that lines of several writers do not mix and nothing waits in a buffer.
    /// - Returns: 0, or why it could not be written.
    private static func write(_ bytes: [UInt8], _ descriptor: Int32) -> Int32 {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                if errno == EINTR { continue }
                guard errno == EAGAIN else { return errno }
                // Somebody made the pipe or terminal non-blocking: wait for room.
                var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&ready, 1, -1)
            }
            rest = rest.dropFirst(max(0, count))
        }
        return 0
    }
}
