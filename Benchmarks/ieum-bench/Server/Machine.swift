import Glibc

/// What of the machine has a say in the figures.
enum Machine {
    /// The number of processors.
    static var processors: Int { sysconf(Int32(_SC_NPROCESSORS_ONLN)) }

    /// The load of the last minute: others' work beside ours.
    static func load() throws -> Double {
        guard let load = try readProcFile("/proc/loadavg").split(separator: " ").first.flatMap({ Double($0) }) else {
            throw BenchError("/proc/loadavg reads strangely")
        }
        return load
    }

    /// Lets this process and its children open as many files as they may.
    /// - Returns: how many that is.
    static func raiseFileLimit(to wanted: UInt) -> Int {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        // Only root may raise the upper limit; whoever cannot gets what it is.
        var higher = rlimit(rlim_cur: max(limit.rlim_cur, wanted), rlim_max: max(limit.rlim_max, wanted))
        if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &higher) != 0 {
            limit.rlim_cur = limit.rlim_max
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(clamping: limit.rlim_cur)
    }

    /// Microseconds to write 8 KB and force them to the disk of a folder, in the middle of many.
    ///
    /// Nothing durable is faster than this. A few microseconds mean that the folder is not on a disk (tmpfs), or that
    /// the disk does not keep its promise.
    static func forcedWriteMicroseconds(in folder: String) throws -> Double {
        let path = "\(folder)/forced-write"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw BenchError.system(path) }
        defer {
            close(descriptor)
            unlink(path)
        }
        let block = [UInt8](repeating: 0x5A, count: 8_192)
        var times = Samples()
        for _ in 0..<200 {
            let started = monotonicNanoseconds()
            guard pwrite(descriptor, block, block.count, 0) == block.count, fdatasync(descriptor) == 0 else {
                throw BenchError.system(path)
            }
            times.add(Double(monotonicNanoseconds() - started) / 1_000)
        }
        return times.median
    }
}
