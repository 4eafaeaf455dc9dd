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
            exec 4<&-
            trap 'kill "$nap" 2>/dev/null; exit' TERM
            seconds=0
            while [ "$seconds" -lt 70 ] && kill -0 "$child" 2>/dev/null; do
                if [ "$seconds" -eq 60 ]; then kill -s QUIT "$child"; fi
                sleep 1 & nap=$!
                wait "$nap"
                seconds=$((seconds + 1))
            done
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
