import Glibc

/// Why a figure could not be measured; one line, and where it helps what the other side printed.
struct BenchError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) {
        self.description = description
    }

    /// An error of a system call, from `errno`.
    static func system(_ call: String, number: Int32 = errno) -> BenchError {
        BenchError("\(call): \(String(cString: strerror(number)))")
    }
}

/// Somebody pressed Ctrl-C, or sent SIGTERM: clean up and go.
struct Interrupted: Error {}
