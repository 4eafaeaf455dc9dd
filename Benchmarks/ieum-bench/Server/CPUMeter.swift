import Glibc

/// CPU seconds of the daemon, of PostgreSQL, and of this process, which generates the load.
struct CPUUse {
    var daemon = 0.0
    var postgres = 0.0
    var generator = 0.0

    /// What a push costs the operator.
    var server: Double { daemon + postgres }

    static func - (left: CPUUse, right: CPUUse) -> CPUUse {
        CPUUse(
            daemon: left.daemon - right.daemon, postgres: left.postgres - right.postgres,
            generator: left.generator - right.generator)
    }
}

/// Reads what processes have used, from `/proc/PID/stat`, in steps of a clock tick (10 ms), and getrusage for ourselves.
///
/// PostgreSQL is the postmaster and all its children, the ended ones too: a child that ends moves its time to the
/// postmaster's account of ended children (`cutime`, `cstime`) and out of the sum of the living.
struct CPUMeter {
    /// The postmaster's process.
    var postmaster: pid_t
    /// The daemon's process, if one is running.
    var daemon: pid_t?

    func read() throws -> CPUUse {
        CPUUse(
            daemon: try daemon.map { try Self.stat($0).own } ?? 0, postgres: try readPostgres(),
            generator: Self.readGenerator())
    }

    /// A child that ends while the sum is made would be missing in it, or twice: then the sum is made again. (A backend
    /// that served a whole run has half of the time on its own account.)
    private func readPostgres() throws -> Double {
        var before = try Self.stat(postmaster)
        for _ in 0..<100 {
            let children = try readChildren()
            let after = try Self.stat(postmaster)
            if after.endedChildren == before.endedChildren { return after.own + after.endedChildren + children }
            before = after
        }
        throw BenchError("PostgreSQL's processes end faster than their CPU can be read")
    }

    /// The CPU seconds of the postmaster's living children.
    private func readChildren() throws -> Double {
        guard let folder = opendir("/proc") else { throw BenchError.system("/proc") }
        defer { closedir(folder) }
        var total = 0.0
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard let pid = pid_t(name), let process = try? Self.stat(pid), process.parent == postmaster else {
                continue
            }
            total += process.own
        }
        return total
    }

    private static func readGenerator() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

    private struct Stat {
        var parent: pid_t
        var own: Double
        var endedChildren: Double
    }

    /// Source: proc(5), `/proc/[pid]/stat`: ppid is field 4, utime 14, stime 15, cutime 16, cstime 17.
    private static func stat(_ pid: pid_t) throws -> Stat {
        // The command's name, field 2, is in parentheses and may hold blanks and parentheses.
        let fields = try readProcFile("/proc/\(pid)/stat").split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 14, let parent = pid_t(fields[1]), let user = Double(fields[11]),
            let system = Double(fields[12]), let endedUser = Double(fields[13]), let endedSystem = Double(fields[14])
        else { throw BenchError("/proc/\(pid)/stat reads strangely") }
        let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
        return Stat(
            parent: parent, own: (user + system) / ticks, endedChildren: (endedUser + endedSystem) / ticks)
    }
}

/// The resident memory of a process in bytes.
func residentBytes(_ pid: pid_t) throws -> Double {
    let status = try readProcFile("/proc/\(pid)/status")
    guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
        let kilobytes = line.split(separator: " ").dropFirst().first.flatMap({ Double($0) })
    else { throw BenchError("/proc/\(pid)/status has no VmRSS") }
    return kilobytes * 1_024
}

/// The text of a small file of `/proc`.
func readProcFile(_ path: String) throws -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw BenchError.system(path) }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 8_192)
    let count = read(descriptor, &bytes, bytes.count)
    guard count >= 0 else { throw BenchError.system(path) }
    return String(decoding: bytes.prefix(count), as: UTF8.self)
}
