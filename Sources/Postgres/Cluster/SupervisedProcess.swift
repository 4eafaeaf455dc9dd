import CLibPQ
import Glibc

/// A command that does not outlive us: a small shell between us and it stops it when we are gone, even by kill -9.
///
/// The shell reads orders from a pipe of ours, whose other end the kernel closes when we end; at the end of the pipe
/// it sends SIGINT, and after a minute SIGQUIT. (A parent-death signal would not do: it is bound to the thread that
/// started the child.) Shell and command run in a session of their own, so that a Ctrl-C at our terminal is for us to
/// handle first. The command inherits one descriptor, a lock, which is thus held as long as any of its processes lives.
struct SupervisedProcess: ~Copyable {
    /// The command's process.
    let pid: Int32
    /// Readable, at its end, when the shell has ended, and the command with it. Never anything else after the start.
    let endDescriptor: Int32
    private let shell: pid_t
    private let orders: Int32

    private static let script = """
        cd /
        exec 4<&0 </dev/null
        "$@" >&2 4<&- &
        child=$!
        echo "$child"
        (
            exec >/dev/null 3>&-
            while read -r signal <&4; do kill -s "$signal" "$child" 2>/dev/null; done
            kill -s INT "$child" 2>/dev/null
            trap 'kill "$nap" 2>/dev/null; exit' TERM
            sleep 60 4<&- & nap=$!
            wait "$nap"
            kill -s QUIT "$child" 2>/dev/null
        ) &
        watcher=$!
        exec 4<&-
        wait "$child"
        status=$?
        kill "$watcher" 2>/dev/null
        exit "$status"
        """

    /// Starts a command. Its output goes to `log`.
    init(
        _ command: [String], as user: SystemUser, log: Int32, lock: borrowing FolderLock
    ) throws(ClusterError) {
        let (ordersRead, ordersWrite) = try Self.pipe()
        let (statusRead, statusWrite): (Int32, Int32)
        do { (statusRead, statusWrite) = try Self.pipe() } catch {
            close(ordersRead)
            close(ordersWrite)
            throw error
        }
        defer {
            close(ordersRead)
            close(statusWrite)
        }
        do {
            shell = try ChildProcess.spawn(
                user.commandPrefix + ["/bin/sh", "-c", Self.script, "ieum-supervisor"] + command,
                descriptors: [ordersRead, statusWrite, log, lock.descriptor])
        } catch {
            close(ordersWrite)
            close(statusRead)
            throw error
        }
        orders = ordersWrite
        endDescriptor = statusRead
        pid = Self.readNumber(statusRead) ?? 0
    }

    deinit {
        close(orders)
        close(endDescriptor)
    }

    /// Has the shell send a signal to the command, by its name without `SIG`.
    func send(_ signal: String) {
        let order = Array("\(signal)\n".utf8)
        // It may have ended already, which is what most signals are for. Some programs do not ignore SIGPIPE.
        Self.withoutBrokenPipeSignal { _ = write(orders, order, order.count) }
    }

    /// Waits for the end, at most so long; nil if it has not come.
    func hasEnded(within limit: Duration) -> Bool {
        let deadline = ContinuousClock.now + limit
        var descriptor = pollfd(fd: endDescriptor, events: Int16(POLLIN), revents: 0)
        while true {
            let left = (deadline - .now) / .milliseconds(1)
            let ready = poll(&descriptor, 1, Int32(min(max(left.rounded(.up), 0), 1e9)))
            if ready > 0 { return true }
            if ready == 0 || errno != EINTR { return false }
        }
    }

    /// The command's exit status after its end, 128 and the signal's number if a signal ended it.
    consuming func reap() -> Int32 {
        // Its orders end first, or a shell whose main part was killed would leave the command running.
        close(orders)
        close(endDescriptor)
        let shell = shell
        discard self
        return ChildProcess.wait(shell)
    }

    private static func pipe() throws(ClusterError) -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw ClusterError("cannot make a pipe", errno: errno) }
        return (ends[0], ends[1])
    }

    /// The number in the first line; nil if the other end closes before it comes.
    private static func readNumber(_ descriptor: Int32) -> Int32? {
        var digits: [UInt8] = []
        var byte: UInt8 = 0
        while digits.count < 20 {
            let count = read(descriptor, &byte, 1)
            if count < 0 && errno == EINTR { continue }
            guard count == 1, byte != UInt8(ascii: "\n") else { break }
            digits.append(byte)
        }
        return Int32(String(decoding: digits, as: UTF8.self))
    }

    private static func withoutBrokenPipeSignal(_ body: () -> Void) {
        var pipeSignal = sigset_t()
        var before = sigset_t()
        sigemptyset(&pipeSignal)
        sigaddset(&pipeSignal, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &pipeSignal, &before)
        body()
        var none = timespec(tv_sec: 0, tv_nsec: 0)
        if sigismember(&before, SIGPIPE) == 0 { while sigtimedwait(&pipeSignal, nil, &none) > 0 {} }
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }
}

/// Starting programs without a shell.
enum ChildProcess {
    /// Starts a program, found by PATH, in a session of its own, with these descriptors as 0, 1, 2 … and no others, the
    /// default handling of every signal, and an environment of nothing but PATH.
    static func spawn(_ command: [String], descriptors: [Int32]) throws(ClusterError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // Upwards first, so that no descriptor is overwritten before it was copied.
        let high = Int32(descriptors.count) + (descriptors.max() ?? 0) + 1
        for (index, descriptor) in descriptors.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, high + Int32(index))
        }
        for index in descriptors.indices {
            posix_spawn_file_actions_adddup2(&actions, high + Int32(index), Int32(index))
        }
        posix_spawn_file_actions_addclosefrom_np(&actions, Int32(descriptors.count))

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | Int32(IEUM_SPAWN_SETSID)))

        let path =
            getenv("PATH").map { String(cString: $0) } ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        var pid: pid_t = 0
        let code = withCStringArray(command) { arguments in
            guard let program = arguments.pointee else { return ENOENT }
            return withCStringArray(["PATH=\(path)", "LC_ALL=C"]) { environment in
                posix_spawnp(
                    &pid, program, &actions, &attributes,
                    // posix_spawn takes `char *const *` and does not write to it.
                    UnsafePointer(OpaquePointer(arguments)), UnsafePointer(OpaquePointer(environment)))
            }
        }
        guard code == 0 else { throw ClusterError("cannot start \(command.first ?? "")", errno: code) }
        return pid
    }

    /// Waits for a child's end; its exit status, or 128 and the signal's number.
    static func wait(_ pid: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 {
            if errno != EINTR { return -1 }
        }
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    /// What a program prints on stdout, or nil if it cannot be run or fails.
    static func output(of command: [String]) -> String? {
        var ends: [Int32] = [0, 0]
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard null >= 0, pipe2(&ends, O_CLOEXEC) == 0 else { return nil }
        let child = try? spawn(command, descriptors: [null, ends[1], null])
        close(ends[1])
        close(null)
        defer { close(ends[0]) }
        guard let child else { return nil }
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(ends[0], &chunk, chunk.count)
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { break }
            text.append(contentsOf: chunk.prefix(count))
        }
        return wait(child) == 0 ? String(decoding: text, as: UTF8.self) : nil
    }
}
