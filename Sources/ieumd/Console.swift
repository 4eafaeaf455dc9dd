import Foundation
import TerminalText

/// Words for a person: data on standard output, talk on standard error.
enum Console {
    static func output(_ text: String) { write(text, STDOUT_FILENO) }

    /// Talk as it is, without a name before it or an end of line behind it.
    static func talk(_ text: String) { write(text, STDERR_FILENO) }

    static func error(_ message: String, hint: String?) {
        // What was typed, or stands in the database, may be in it: none of it steers a terminal.
        let lines = ("ieumd: \(message)" + (hint.map { "\n\($0)" } ?? "")).replacing("\t", with: "    ")
            .split(separator: "\n", omittingEmptySubsequences: false).map { String($0).terminalSafe }
        write(lines.joined(separator: "\n") + "\n", STDERR_FILENO)
    }

    /// Writes everything at once, so that lines of several writers do not mix and nothing waits in a buffer.
    private static func write(_ text: String, _ descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno != EINTR { return }
            bytes = bytes.dropFirst(max(0, count))
        }
    }
}
