import Glibc

/// Says on stderr what is being measured.
struct Progress {
    private let started = monotonicNanoseconds()

    func say(_ text: String) {
        let seconds = (monotonicNanoseconds() - started) / 1_000_000_000
        let digits = String(seconds)
        writeError("[\(String(repeating: " ", count: max(0, 4 - digits.count)))\(digits) s] \(text)\n")
    }
}

/// Writes a text to stderr.
func writeError(_ text: String) {
    let bytes = Array(text.utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
}
