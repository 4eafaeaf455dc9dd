import CLibPQ
import Glibc

/// Starting programs without a shell.
package enum ChildProcess {
    /// Starts a program, found by PATH, in a session of its own, with these descriptors as 0, 1, 2 … and no others, the
    /// default handling of every signal, and an environment of nothing but PATH.
    package static func spawn(_ command: [String], descriptors: [Int32]) throws(ClusterError) -> pid_t {
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
    package static func wait(_ pid: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 {
            if errno != EINTR { return -1 }
        }
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    /// What a program prints on stdout, or nil if it cannot be run or fails.
    package static func output(of command: [String]) -> String? {
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
