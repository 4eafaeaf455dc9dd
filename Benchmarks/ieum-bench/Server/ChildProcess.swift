import EventLoop
import Glibc

/// A program that we started, in a process group of its own so that a Ctrl-C at the terminal is ours to handle.
///
/// It ends at the latest when this object goes, and gets SIGTERM from the kernel when we are killed.
final class ChildProcess {
    /// Its process.
    let pid: pid_t

    private let conductor: Conductor
    private let name: String
    private let output: Int32
    private var watch: DescriptorWatch?
    private var printed: [UInt8] = []
    private var hasClosedOutput = false
    private var isReaped = false

    /// Starts a program, found by PATH unless its name holds a slash.
    ///
    /// What it prints on stdout is kept; what it prints on stderr too, or else goes to the file `log`.
    init(_ conductor: Conductor, _ command: [String], log: String? = nil) throws {
        self.conductor = conductor
        name = command.first ?? ""
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw BenchError.system("pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        output = ends[0]
        do {
            // setpriv, of util-linux, becomes the program itself: the process stays the same.
            pid = try Self.spawn(["setpriv", "--pdeathsig", "TERM"] + command, stdout: ends[1], log: log)
        } catch {
            close(ends[0])
            close(ends[1])
            throw error
        }
        close(ends[1])
        watch = try DescriptorWatch(on: conductor.loop, descriptor: output, interest: .read) { [unowned self] _ in
            receive()
        }
    }

    deinit {
        if !isReaped {
            // The whole group: it may have children.
            kill(-pid, SIGKILL)
            _ = reap()
        }
        watch?.cancel()
        close(output)
    }

    /// What it has printed.
    var text: String { String(decoding: printed, as: UTF8.self) }

    /// Waits for its first line on stdout.
    func firstLine(atMost limit: Duration) throws -> String {
        try conductor.wait(for: "the first line of \(name)", atMost: limit) {
            hasClosedOutput || printed.contains(UInt8(ascii: "\n"))
        }
        guard let line = text.split(separator: "\n").first else { throw BenchError("\(name) ended without a word") }
        return String(line)
    }

    /// Waits for its end.
    /// - Returns: what it printed.
    /// - Throws: when it fails, with the last lines that it printed.
    @discardableResult
    func finish(atMost limit: Duration) throws -> String {
        try conductor.wait(for: "the end of \(name)", atMost: limit) { hasClosedOutput }
        let status = reap()
        guard status == 0 else {
            throw BenchError("\(name) failed with status \(status): \(text.suffix(2_000))")
        }
        return text
    }

    /// Asks it to end, and waits until it has.
    func stop(atMost limit: Duration = .seconds(30)) throws {
        kill(pid, SIGTERM)
        try finish(atMost: limit)
    }

    private func receive() {
        var chunk = [UInt8](repeating: 0, count: 4_096)
        let count = read(output, &chunk, chunk.count)
        if count > 0 {
            printed.append(contentsOf: chunk.prefix(count))
        } else if count == 0 || errno != EINTR {
            hasClosedOutput = true
            watch?.cancel()
        }
    }

    /// The exit status, or 128 and the signal's number.
    private func reap() -> Int32 {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
        isReaped = true
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    private static func spawn(_ command: [String], stdout: Int32, log: String?) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, stdout, 1)
        if let log {
            posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        } else {
            posix_spawn_file_actions_adddup2(&actions, stdout, 2)
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Neither what we ignore nor what this thread blocks is for the program to inherit.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))

        let arguments = command.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var pid: pid_t = 0
        let code = posix_spawnp(&pid, command.first ?? "", &actions, &attributes, arguments, environ)
        guard code == 0 else { throw BenchError.system("cannot start \(command.first ?? "")", number: code) }
        return pid
    }
}
