import Glibc
import TerminalText

/// Where the program's words go: data to stdout, talk to stderr.
struct Output {
    /// Whether stdout is a terminal and styles are welcome there.
    let isStyled: Bool
    /// Whether stdout is a terminal.
    let isTerminal: Bool
    private let dataDescriptor: Int32
    private let talkDescriptor: Int32

    /// Stdout could not be written.
    struct Broken: Error {
        /// Why; `EPIPE` when nobody reads any more.
        var number: Int32
    }

    /// Writes to stdout and stderr, or to other descriptors.
    init(environment: [String: String], data: Int32 = STDOUT_FILENO, talk: Int32 = STDERR_FILENO) {
        dataDescriptor = data
        talkDescriptor = talk
        isTerminal = isatty(data) == 1
        let isPlain = !(environment["NO_COLOR"] ?? "").isEmpty || environment["TERM"] == "dumb"
        isStyled = isTerminal && !isPlain
    }

    /// How many columns stdout has; nil where it is no terminal, and nothing needs to fit.
    var width: Int? {
        guard isTerminal else { return nil }
        var size = winsize()
        guard ioctl(dataDescriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    /// Shows how far a long work is, on a terminal's stderr only. The next one takes its place.
    func progress(_ text: String) {
        guard isatty(talkDescriptor) == 1 else { return }
        _ = Self.write(Array("\r\(text.terminalSafe)\u{1B}[K".utf8), to: talkDescriptor)
    }

    /// Takes what ``progress(_:)`` showed away.
    func endProgress() {
        guard isatty(talkDescriptor) == 1 else { return }
        _ = Self.write(Array("\r\u{1B}[K".utf8), to: talkDescriptor)
    }

    /// Writes bytes to stdout, at once.
    func data(_ bytes: [UInt8]) throws(Broken) {
        let number = Self.write(bytes, to: dataDescriptor)
        guard number == 0 else { throw Broken(number: number) }
    }

    /// Writes a line to stdout, at once. Nothing in it steers a terminal, wherever its words come from.
    func line(_ text: String) throws(Broken) {
        try data(Array((text.terminalSafe + "\n").utf8))
    }

    /// Writes a line to stdout, at once, in bold where stdout shows styles.
    func boldLine(_ text: String) throws(Broken) {
        guard isStyled else { return try line(text) }
        try data(Array("\u{1B}[1m\(text.terminalSafe)\u{1B}[0m\n".utf8))
    }

    /// Writes lines to stderr. Nothing in them steers a terminal. When writing fails there is nobody left to tell.
    func talk(_ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).terminalSafe }
        _ = Self.write(Array((lines.joined(separator: "\n") + "\n").utf8), to: talkDescriptor)
    }

    /// Asks on stderr; the answer is typed behind it. Nothing in it steers a terminal.
    func ask(_ question: String) {
        _ = Self.write(Array(question.terminalSafe.utf8), to: talkDescriptor)
    }

    /// Writes an object as a line to stderr.
    func talk(_ value: JSONText) {
        _ = Self.write(JSONText.terminalSafe(value.line.dropLast()) + [UInt8(ascii: "\n")], to: talkDescriptor)
    }

    /// Writes an object as a line to stdout, at once.
    func json(_ value: JSONText) throws(Broken) {
        try data(isTerminal ? JSONText.terminalSafe(value.line.dropLast()) + [UInt8(ascii: "\n")] : value.line)
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // Somebody made the terminal or pipe non-blocking: wait for room.
                var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&ready, 1, -1)
            } else if errno != EINTR {
                return errno
            }
        }
        return 0
    }
}
