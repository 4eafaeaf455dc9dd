import Glibc

/// A folder whose files are for its owner alone: folder mode 0700, files 0600 from the first byte on.
///
/// Writing replaces a file as a whole (a new file, synced, then renamed over the old one), so a reader sees the old text
/// or the new one, also after a crash.
struct PrivateFolder: Sendable {
    /// The folder's path.
    let path: String

    /// The path of one of its files.
    func path(of name: String) -> String { "\(path)/\(name)" }

    /// Makes the folder, and the folders above it, where they are missing.
    /// - Throws: ``HomeError`` `exposed`, see ``check()``.
    func create() throws(HomeError) {
        try Self.makeFolder(path)
        try check()
    }

    /// Looks whether the folder is safe from others, if it is there.
    /// - Throws: ``HomeError`` `exposed` when others may write into it, since they could replace the token, or the address
    ///   that it is sent to; `system` when it is no folder.
    func check() throws(HomeError) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return }
            throw .system("stat", path)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw .system("open", path, number: ENOTDIR) }
        try Self.checkIntegrity(of: path, status, hint: "chmod 700")
    }

    /// Whether nobody but a user, and root, may change what a file or folder holds.
    static func isOwnersAlone(owner: uid_t, mode: mode_t, for user: uid_t) -> Bool {
        (owner == user || owner == 0 || user == 0) && mode & (S_IWGRP | S_IWOTH) == 0
    }

    private static func checkIntegrity(of path: String, _ status: stat, hint: String) throws(HomeError) {
        let user = geteuid()
        guard !isOwnersAlone(owner: status.st_uid, mode: status.st_mode, for: user) else { return }
        guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
            throw HomeError(
                .exposed, "\(path) can be written by others", hint: "Close it: \(hint) \(path.shellQuoted)")
        }
        throw HomeError(
            .exposed, "\(path) belongs to another user", hint: "Take it over: sudo chown $USER \(path.shellQuoted)")
    }

    private static func makeFolder(_ path: String) throws(HomeError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
            throw .system("mkdir", path)
        }
        try makeFolder(String(path[..<slash]))
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .system("mkdir", path) }
    }

    /// From whom a file must be safe that is read.
    enum Safety {
        /// What it holds does no harm, whoever wrote it.
        case any
        /// Others may not write it.
        case fromChanges
        /// Others may not even read it, and it is this user's own.
        case secret
    }

    /// The bytes of a file; nil when there is none.
    /// - Parameters:
    ///   - limit: a longer file is damaged.
    ///   - safety: refuses a file that is less safe (`exposed`).
    func read(_ name: String, limit: Int, safety: Safety = .any) throws(HomeError) -> [UInt8]? {
        let path = path(of: name)
        // Without O_NONBLOCK a pipe that somebody put there would keep us waiting.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw .system("open", path)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system("stat", path) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .damaged(path, "it is not a regular file") }
        switch safety {
        case .any: break
        case .fromChanges: try Self.checkIntegrity(of: path, status, hint: "chmod 600")
        case .secret: try Self.checkSecrecy(of: path, status)
        }
        guard status.st_size <= limit else { throw .damaged(path, "it is longer than \(limit) bytes") }
        return try Self.bytes(of: descriptor, path, limit: limit)
    }

    private static func checkSecrecy(of path: String, _ status: stat) throws(HomeError) {
        let user = geteuid()
        guard status.st_uid == user || user == 0 else {
            throw HomeError(
                .exposed, "\(path) belongs to another user", hint: "Take it over: sudo chown $USER \(path.shellQuoted)")
        }
        guard status.st_mode & (S_IRWXG | S_IRWXO) == 0 else {
            let mode = "0" + String(status.st_mode & 0o777, radix: 8)
            throw HomeError(
                .exposed, "\(path) holds a secret and is open to others (mode \(mode))",
                hint: "Close it: chmod 600 \(path.shellQuoted)")
        }
    }

    private static func bytes(of descriptor: Int32, _ path: String, limit: Int) throws(HomeError) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count > 0 {
                bytes += chunk[..<count]
                guard bytes.count <= limit else { throw .damaged(path, "it is longer than \(limit) bytes") }
            } else if count == 0 {
                return bytes
            } else if errno != EINTR {
                throw .system("read", path)
            }
        }
    }

    /// Replaces a file, or makes it. Only while locked: what a process that was killed had begun is in the way of nobody then.
    func write(_ name: String, _ bytes: [UInt8]) throws(HomeError) {
        let path = path(of: name)
        let draft = self.path(of: ".\(name).draft")
        guard unlink(draft) == 0 || errno == ENOENT else { throw .system("remove", draft) }
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system("create", draft) }
        do throws(HomeError) {
            defer { close(descriptor) }
            // Only a strange umask makes a difference here: it may have taken rights from the owner.
            guard fchmod(descriptor, 0o600) == 0 else { throw .system("chmod", draft) }
            try Self.writeAll(bytes, to: descriptor, draft)
            guard fsync(descriptor) == 0 else { throw .system("fsync", draft) }
            guard rename(draft, path) == 0 else { throw .system("rename", draft) }
        } catch {
            unlink(draft)
            throw error
        }
        try sync()
    }

    private static func writeAll(_ bytes: [UInt8], to descriptor: Int32, _ path: String) throws(HomeError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                throw .system("write", path)
            }
        }
    }

    /// Takes what rights others have on files, as far as the files exist.
    func restrict(_ names: [String]) throws(HomeError) {
        for path in names.map({ path(of: $0) }) {
            // By its path: to close a descriptor of a database would end the locks that this process has on it.
            var status = stat()
            guard stat(path, &status) == 0 else {
                guard errno == ENOENT else { throw .system("stat", path) }
                continue
            }
            guard status.st_mode & S_IFMT == S_IFREG else { throw .damaged(path, "it is not a regular file") }
            guard status.st_mode & 0o777 != 0o600 else { continue }
            guard chmod(path, 0o600) == 0 else { throw .system("chmod", path) }
        }
    }

    /// Moves files, as far as they exist, into a new folder inside this one.
    func setAside(_ names: [String], into folder: String) throws(HomeError) {
        guard mkdir(path(of: folder), 0o700) == 0 else { throw .system("mkdir", path(of: folder)) }
        for name in names where rename(path(of: name), path(of: "\(folder)/\(name)")) != 0 {
            guard errno == ENOENT else { throw .system("rename", path(of: name)) }
        }
        try sync()
    }

    /// Makes what was renamed last through a power cut.
    private func sync() throws(HomeError) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system("open", path) }
        defer { close(descriptor) }
        // Some file systems cannot sync a folder and say EINVAL.
        guard fsync(descriptor) == 0 || errno == EINVAL else { throw .system("fsync", path) }
    }

    /// Runs something while no other process runs something of the kind in this folder.
    ///
    /// The lock is `flock` on the file `lock`; it goes with the process, however that ends.
    /// - Throws: ``HomeError`` `locked` when it is not free in time, and what `body` throws.
    func whileLocked<Value>(patience: Duration = .seconds(10), _ body: () throws -> Value) throws -> Value {
        let path = path(of: "lock")
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw HomeError.system("open", path) }
        defer { close(descriptor) }
        let deadline = ContinuousClock.now + patience
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else { throw HomeError.system("flock", path) }
            guard ContinuousClock.now < deadline else {
                throw HomeError(
                    .locked, "another ieum is at work in \(self.path)", hint: "Wait until it has ended, then try again."
                )
            }
            usleep(10_000)
        }
        return try body()
    }
}
