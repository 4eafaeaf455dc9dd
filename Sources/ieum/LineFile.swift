import Glibc

/// Reads a file, or stdin for `-`, line by line.
final class LineFile {
    /// The number of the line that was read last, from 1.
    private(set) var lineNumber = 0
    private let path: String
    private let descriptor: Int32
    private let limit: Int
    private var buffer: [UInt8] = []
    private var start = 0
    private var scanned = 0
    private var isAtEnd = false

    /// Opens it.
    /// - Parameter limit: the most bytes of a line.
    init(_ path: String, limit: Int) throws(Failure) {
        self.path = path
        self.limit = limit
        descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure(path) }
    }

    deinit {
        if descriptor != STDIN_FILENO { close(descriptor) }
    }

    /// The next line, with whether a line feed ended it; nil at the end.
    func next() throws(Failure) -> (line: ArraySlice<UInt8>, isEnded: Bool)? {
        lineNumber += 1
        while true {
            if let end = buffer[scanned...].firstIndex(of: UInt8(ascii: "\n")) {
                guard end - start <= limit else { throw tooLong() }
                let line = buffer[start..<end]
                (start, scanned) = (end + 1, end + 1)
                return (line, true)
            }
            scanned = buffer.count
            guard buffer.count - start <= limit else { throw tooLong() }
            if isAtEnd {
                guard start < buffer.count else { return nil }
                defer { start = buffer.count }
                return (buffer[start...], false)
            }
            try read()
        }
    }

    private func read() throws(Failure) {
        if start > 0 {
            buffer.removeFirst(start)
            (scanned, start) = (scanned - start, 0)
        }
        var chunk = [UInt8](repeating: 0, count: 262_144)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count > 0 { return buffer += chunk[..<count] }
            if count == 0 { return isAtEnd = true }
            guard errno == EINTR else { throw Self.failure(path) }
        }
    }

    private func tooLong() -> Failure {
        Failure(
            .usage, code: "export-line-too-long", "line \(lineNumber) of \(path) is longer than \(limit) bytes",
            hint: "The server takes no state of that size, and exports none. Nothing was imported.")
    }

    private static func failure(_ path: String) -> Failure {
        Failure(.usage, code: "input", "\(path) cannot be read: \(String(cString: strerror(errno)))")
    }
}
