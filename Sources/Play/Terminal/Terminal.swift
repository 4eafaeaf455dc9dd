import Foundation
import Glibc

/// The player's terminal: raw keys in, a screen of its own out. What it was before is put back by ``leave()``, and by
/// ``EmergencyExit`` where the program dies of a fault of its own.
package final class Terminal {
    /// What can be read just now.
    package enum Input: Hashable, Sendable {
        case bytes([UInt8])
        /// Nothing, though there seemed to be something.
        case nothing
        /// Nothing any more: the terminal is gone.
        case ended
    }

    /// What the terminal can show.
    package let ability: Painter.Ability
    /// Where keys come from.
    package let input: Int32
    private let output: Int32
    /// Whether ``output`` was opened here, so that writing never waits.
    private let ownsOutput: Bool
    private var saved: termios?
    private var raw: termios?

    /// The terminal on these descriptors; nil: they are none.
    package init?(
        environment: [String: String], input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO
    ) {
        guard isatty(input) == 1, isatty(output) == 1 else { return nil }
        self.input = input
        // Opened anew, so that only we do not wait in a write: the shell shares the old one. Where it may not be opened (it is another
        // user's, after su) a terminal that takes nothing holds us up.
        let own = open("/proc/self/fd/\(output)", O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
        (self.output, ownsOutput) = own >= 0 ? (own, true) : (output, false)
        let kind = environment["TERM"] ?? ""
        // Source: no-color.org. A terminal whose name says "mono" or ends in "-m" has no colours (terminfo(5)).
        if kind.isEmpty || kind == "dumb" {
            ability = .linesOnly
        } else if !(environment["NO_COLOR"] ?? "").isEmpty || kind.hasSuffix("-m") || kind.hasSuffix("-mono")
            || kind == "vt100" || kind == "vt220"
        {
            ability = .plain
        } else {
            ability = .colours
        }
    }

    deinit {
        leave()
        if ownsOutput { close(output) }
    }

    /// Columns and rows. What a terminal does not tell is 80 and 24; lines that come one under the other need no more.
    package var size: (width: Int, height: Int) {
        var size = winsize()
        guard ability != .linesOnly, ioctl(output, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0
        else { return (80, 24) }
        return (min(Int(size.ws_col), 500), min(Int(size.ws_row), 200))
    }

    /// Gives keys as they are pressed, and a screen of its own. Does nothing where that is so already.
    /// - Throws: ``TerminalError``.
    package func enter() throws(TerminalError) {
        guard saved == nil else { return }
        var settings = termios()
        guard tcgetattr(input, &settings) == 0 else { throw TerminalError(call: "tcgetattr") }
        saved = settings
        EmergencyExit.arm(input: input, output: output, settings: settings, farewell: farewell)
        cfmakeraw(&settings)
        raw = settings
        do throws(TerminalError) {
            try reassert()
        } catch {
            leave()
            throw error
        }
    }

    /// Makes it anew what ``enter()`` made it, after somebody else had the terminal in between, a shell say.
    /// - Throws: ``TerminalError``.
    package func reassert() throws(TerminalError) {
        guard saved != nil, var settings = raw else { return }
        guard tcsetattr(input, TCSADRAIN, &settings) == 0 else { throw TerminalError(call: "tcsetattr") }
        guard ability != .linesOnly else { return }
        // Another screen, and pastes in brackets. Source: xterm's "Control Sequences", private modes 1049 and 2004.
        write("\u{1B}[?1049h\u{1B}[?2004h")
    }

    /// Puts back what was before ``enter()``. Waits a second at most for the terminal, which may be gone, or take nothing.
    package func leave() {
        guard var settings = saved else { return }
        saved = nil
        write(farewell, patience: 1_000)
        tcsetattr(input, TCSANOW, &settings)
        // Keys that nobody reads any more are not the shell's.
        tcflush(input, TCIFLUSH)
        EmergencyExit.disarm()
    }

    private var farewell: String {
        ability == .linesOnly ? "" : "\u{1B}[0m\u{1B}[?2004l\u{1B}[?25h\u{1B}[?1049l"
    }

    /// Reads what is there; waits when nothing is.
    package func read() -> Input {
        var chunk = [UInt8](repeating: 0, count: 4_096)
        let count = Glibc.read(input, &chunk, chunk.count)
        if count > 0 { return .bytes(Array(chunk[..<count])) }
        return count < 0 && (errno == EINTR || errno == EAGAIN) ? .nothing : .ended
    }

    /// Writes text as it is. When the terminal is gone there is nobody to write to.
    /// - Parameter patience: how long to wait for a terminal that takes nothing, in milliseconds.
    /// - Returns: whether all of it went out. A signal ends the waiting as well.
    @discardableResult
    package func write(_ text: String, patience: Int32 = 5_000) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(output, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                var ready = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
                guard poll(&ready, 1, patience) > 0, ready.revents & Int16(POLLOUT) != 0 else { return false }
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}

/// The terminal did not do what it was asked.
package struct TerminalError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call that failed.
    package var call: String
    /// Its `errno`.
    package var number: Int32

    /// Whether nobody is at the other end any more.
    package var isGone: Bool { number == EIO }

    init(call: String) {
        self.call = call
        number = errno
    }

    /// One line.
    package var description: String { "the terminal failed: \(call): \(String(cString: strerror(number)))" }
}
