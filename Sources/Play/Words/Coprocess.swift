import Glibc

/// A program that runs beside this one and is spoken to by its standard input and output.
///
/// Not Foundation's `Process`: one that was started where no run loop runs, as on a queue, holds itself for good.
struct Coprocess: ~Copyable {
    /// Our end of its standard input and output.
    private let descriptor: Int32
    private let processID: pid_t

    /// Starts a program with this process's environment; what it says on standard error is dropped.
    /// - Parameter command: the program's path, and its arguments.
    /// - Returns: nil if it cannot be started.
    init?(_ command: [String]) {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard let program = command.first, socketpair(AF_UNIX, kind, 0, &ends) == 0 else { return nil }
        defer { Glibc.close(ends[1]) }

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)

        // It is to end as programs do, whatever this one does at a signal, and not at those that the terminal sends to this one.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))

        let words = command.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var child: pid_t = 0
        guard posix_spawn(&child, program, &actions, &attributes, words, environ) == 0 else {
            Glibc.close(ends[0])
            return nil
        }
        descriptor = ends[0]
        processID = child
    }

    /// Kills it, and waits for its end.
    deinit {
        close(descriptor)
        kill(processID, SIGKILL)
        while waitpid(processID, nil, 0) < 0, errno == EINTR {}
    }

    /// Sends it a text that is shorter than what its input takes at once.
    /// - Returns: whether it was taken.
    func send(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        // Speaking to a program that has ended is an error, and no death.
        return Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    /// Waits for something that it says.
    /// - Parameter milliseconds: how long.
    /// - Returns: what there is by now, up to 4 KB; empty if nothing came; nil if it has ended.
    func receive(within milliseconds: Int32) -> ArraySlice<UInt8>? {
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        let count = poll(&ready, 1, milliseconds)
        guard count > 0 else { return count == 0 || errno == EINTR ? [] : nil }
        var chunk = [UInt8](repeating: 0, count: 4_096)
        let size = recv(descriptor, &chunk, chunk.count, 0)
        if size < 0, errno == EINTR { return [] }
        return size > 0 ? chunk[..<size] : nil
    }
}
