import Foundation
import Synchronization

/// Shows the events of a run: a line that counts the seconds on a terminal, plain lines otherwise.
final class Progress: Sendable {
    private struct State {
        /// What is under way and since when.
        var activity: (text: String, since: ContinuousClock.Instant)?
        /// What the terminal's last line shows; empty for nothing.
        var drawn = ""
        var isFinished = false
    }

    private let state = Mutex(State())
    private let write: @Sendable (String) -> Void
    private let isTerminal: Bool
    private let isVerbose: Bool
    // Called on the thread of `show` alone.
    private nonisolated(unsafe) let onApplied: (String) -> Void

    /// `onApplied` takes the line of each file that is done.
    init(
        write: @escaping @Sendable (String) -> Void, onApplied: @escaping (String) -> Void, isTerminal: Bool,
        isVerbose: Bool
    ) {
        self.write = write
        self.onApplied = onApplied
        self.isTerminal = isTerminal
        self.isVerbose = isVerbose
        guard isTerminal else { return }
        Thread.detachNewThread { [weak self] in
            while self?.tick() == true { Thread.sleep(forTimeInterval: 0.2) }
        }
    }

    /// Shows an event.
    func show(_ event: Event) {
        switch event {
        case .waiting(let holder, let since):
            let seconds = since.milliseconds / 1000
            line("waiting for \(holder)" + (seconds > 0 ? ", \(seconds) s so far" : ""))
            begin("waiting for the lock")
        case .started(let file, _, let resumingAt):
            if let resumingAt { line("\(file): going on at statement \(resumingAt)") }
            begin(file)
        case .statementStarted(let file, let number, let count, let lineNumber):
            if isVerbose || !isTerminal { line("\(file):\(lineNumber): statement \(number) of \(count)") }
            begin("\(file): statement \(number) of \(count)")
        case .retrying(let file, let attempt, let count, let pause, let problem):
            line(
                "\(file): \(problem.message); trying again in \(pause.milliseconds) ms (attempt \(attempt) of \(count))"
            )
        case .applied(let file, let milliseconds):
            end()
            onApplied("applied  \(file)  \(milliseconds) ms")
        case .notice(let file, let severity, let message):
            if isVerbose || severity == "WARNING" { line("\(file): \(severity): \(message)") }
        case .warning(let message):
            line("warning: \(message)")
        }
    }

    /// Removes what is drawn; nothing is drawn afterwards.
    func finish() {
        end()
        state.withLock { $0.isFinished = true }
    }

    private func line(_ text: String) {
        state.withLock { state in
            erase(&state)
            write(text.shown + "\n")
        }
    }

    private func begin(_ text: String) {
        state.withLock { state in
            let text = text.shownOnOneLine
            if state.activity?.text != text { state.activity = (text, .now) }
        }
    }

    private func end() {
        state.withLock { state in
            erase(&state)
            state.activity = nil
        }
    }

    private func erase(_ state: inout State) {
        if !state.drawn.isEmpty { write("\r\u{1B}[K") }
        state.drawn = ""
    }

    /// Draws the line when something takes longer than a second; false when all is over.
    private func tick() -> Bool {
        state.withLock { state in
            if let (text, since) = state.activity {
                let seconds = (ContinuousClock.now - since).milliseconds / 1000
                let line = Self.fitted(text, " … \(seconds) s")
                if seconds >= 1, line != state.drawn {
                    write("\r\u{1B}[K\(line)")
                    state.drawn = line
                }
            }
            return !state.isFinished
        }
    }

    /// A line that the terminal does not break, since only one line can be erased.
    private static func fitted(_ text: String, _ end: String) -> String {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return text + end }
        return text.prefix(max(Int(size.ws_col) - end.count - 1, 0)) + end
    }
}
