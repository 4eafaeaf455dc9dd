import FoundationEssentials
import Glibc

/// The folder of a private cluster: its locks, its data, and what an earlier life may have left behind.
struct ClusterFolder {
    let path: String
    var data: String { "\(path)/data" }
    var configuration: String { "\(path)/ieum.conf" }
    private var unfinishedData: String { "\(path)/data.unfinished" }
    private var ownerLock: String { "\(path)/owner.lock" }
    private var serverLock: String { "\(path)/server.lock" }

    /// Makes the folder where there is none, closed to others but for passing through to the server's socket when the
    /// server runs as another user.
    init(_ path: String) throws(ClusterError) {
        self.path = path
        try Self.make(path)
        var status = stat()
        guard stat(path, &status) == 0 else { throw .unfit("cannot use the folder \(path)", errno: errno) }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw ClusterError(
                "\(path) is not a folder", hint: "A file is in the way. Move it, or choose another folder.",
                isFolderUnfit: true)
        }
        // Who may write here may put other data in the place of ours. We never make it so, whatever the umask.
        guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
            throw ClusterError(
                "others may write to \(path)", hint: "Close it: chmod go-w \(path). Or choose another folder.",
                isFolderUnfit: true)
        }
        if SystemUser.isRoot && status.st_mode & S_IXOTH == 0 { chmod(path, status.st_mode & 0o7777 | S_IXOTH) }
    }

    /// Makes a folder and those above it, where they are missing, for others to pass through and not to write to.
    private static func make(_ path: String) throws(ClusterError) {
        var status = stat()
        if stat(path, &status) == 0 { return }
        var folder = ""
        let parts = path.split(separator: "/")
        for (index, part) in parts.enumerated() {
            folder += "/\(part)"
            if mkdir(folder, 0o755) == 0 {
                if index == parts.count - 1 { chmod(folder, SystemUser.isRoot ? 0o711 : 0o700) }
                continue
            }
            let code = errno
            if stat(folder, &status) == 0 {
                if status.st_mode & S_IFMT == S_IFDIR { continue }
                throw ClusterError(
                    "cannot make the folder \(path): \(folder) is a file",
                    hint: "Move it, or choose another folder.", isFolderUnfit: true)
            }
            throw .unfit("cannot make the folder \(folder)", errno: code)
        }
    }

    /// Takes the lock of whoever starts the server here. Gone with that process, so a holder is alive; but for a moment
    /// that holder may be a child of a process that was killed, between its fork and its exec.
    func takeOwnerLock() throws(ClusterError) -> FolderLock {
        for attempt in 0..<20 {
            if attempt > 0 { usleep(10_000) }
            guard let lock = try FolderLock(path: ownerLock) else { continue }
            lock.writeOwner()
            return lock
        }
        let owner = FolderLock.owner(path: ownerLock).map { "process \($0)" } ?? "another process"
        throw ClusterError(
            "\(owner) runs a PostgreSQL in \(path) already", hint: "Stop it first, or choose another folder.",
            isFolderUnfit: true)
    }

    /// Takes the lock that every process of a server here holds: an earlier one may be in the middle of its end.
    func takeServerLock(until deadline: ContinuousClock.Instant) throws(ClusterError) -> FolderLock {
        while true {
            if let lock = try FolderLock(path: serverLock) { return lock }
            guard ContinuousClock.now < deadline else {
                throw ClusterError(
                    "an earlier PostgreSQL in \(path) has not ended",
                    hint: "Look for its processes: fuser \(serverLock).")
            }
            usleep(10_000)
        }
    }

    /// Who shall run the server, having checked that this user gets here.
    func user() throws(ClusterError) -> SystemUser {
        let user = try SystemUser.owner(ofData: data)
        if SystemUser.isRoot, let closed = user.firstClosedFolder(onTheWayTo: path) {
            throw ClusterError(
                "PostgreSQL runs as user \(user.name), who may not enter \(closed)",
                hint: "Choose another folder, or let others pass through: chmod o+x \(closed).", isFolderUnfit: true)
        }
        return user
    }

    /// Makes the data if there is none, and finds the programs of its version.
    func prepareData(
        for user: SystemUser, settings: ClusterSettings, programsFolder: String?, lock: borrowing FolderLock,
        until deadline: ContinuousClock.Instant
    ) throws(ClusterError) -> ServerPrograms {
        let files = FileManager.default
        // We hold the lock that an initdb would hold, so this one was interrupted.
        if files.fileExists(atPath: unfinishedData) {
            do { try files.removeItem(atPath: unfinishedData) } catch {
                throw ClusterError(
                    "cannot remove \(unfinishedData), which an interrupted start left behind",
                    hint: "Remove it, or choose another folder.", isFolderUnfit: true)
            }
        }
        if files.fileExists(atPath: data) {
            guard let version = SmallFile.read("\(data)/PG_VERSION").flatMap({ Int($0.prefix { $0.isNumber }) }) else {
                throw ClusterError(
                    "\(data) does not hold the data of a PostgreSQL", hint: "Choose another folder, or move it away.",
                    isFolderUnfit: true)
            }
            return try ServerPrograms.find(in: programsFolder, majorVersion: version)
        }
        try refuseForeignFolder()
        let programs = try ServerPrograms.find(in: programsFolder)
        try makeData(programs, for: user, settings: settings, lock: lock, until: deadline)
        return programs
    }

    private func refuseForeignFolder() throws(ClusterError) {
        let ours: Set = [
            "owner.lock", "server.lock", "socket", "ieum.conf", "ieum.conf.new", "postgres.log", "postgres.log.1",
        ]
        let found = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        guard let foreign = found.sorted().first(where: { !ours.contains($0) }) else { return }
        throw ClusterError(
            "\(path) holds no cluster of ours, but something else: \(foreign)", hint: "Choose an empty folder.",
            isFolderUnfit: true)
    }

    /// Runs initdb beside the data's place and renames it in the end: a folder that looks ready is ready.
    private func makeData(
        _ programs: ServerPrograms, for user: SystemUser, settings: ClusterSettings, lock: borrowing FolderLock,
        until deadline: ContinuousClock.Instant
    ) throws(ClusterError) {
        guard mkdir(unfinishedData, 0o700) == 0, lchown(unfinishedData, user.userID, user.groupID) == 0 else {
            throw .unfit("cannot make \(unfinishedData)", errno: errno)
        }
        // Sorting by bytes is the same everywhere and for ever; a system's rules change and break indexes. Letters are
        // letters of Unicode where the system has C.UTF-8.
        let ctype = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil)
        if let ctype { freelocale(ctype) }
        var command = [
            programs.initdb, "--pgdata=\(unfinishedData)", "--username=\(PrivateCluster.superuser)", "--encoding=UTF8",
            "--locale=C", "--lc-ctype=\(ctype == nil ? "C" : "C.UTF-8")", "--data-checksums", "--auth-local=trust",
            "--auth-host=reject", "--no-instructions",
        ]
        if !settings.syncsInitialData { command.append("--no-sync") }
        let log = try ServerLog("\(path)/postgres.log")
        let process = try SupervisedProcess(command, as: user, log: log.descriptor, lock: lock)
        if !process.hasEnded(within: deadline - .now) {
            process.send("INT")
            _ = process.hasEnded(within: .seconds(5))
        }
        guard process.reap() == 0 else { throw log.failure("initdb failed") }
        guard rename(unfinishedData, data) == 0 else {
            throw ClusterError("cannot rename \(unfinishedData)", errno: errno)
        }
        SmallFile.syncFolder(path)
    }

    /// Whether the server of that process has written that it is ready. Source: miscadmin.h, "LOCK_FILE_LINE_PM_STATUS".
    func isReady(pid: Int32) -> Bool {
        guard
            let lines = SmallFile.read("\(data)/postmaster.pid")?.split(
                separator: "\n", omittingEmptySubsequences: false)
        else { return false }
        return lines.count >= 8 && Int32(lines[0]) == pid && lines[7].hasPrefix("ready")
    }

    /// Removes the pid file of a dead server where PostgreSQL itself would not: when its number now belongs to an
    /// unrelated process, which is usual after a container's restart. The server's lock is ours, so none runs.
    func removeStalePIDFile() {
        let file = "\(data)/postmaster.pid"
        guard let pid = SmallFile.read(file).flatMap({ Int32($0.prefix { $0.isNumber }) }), pid > 0,
            kill(pid, 0) == 0 || errno == EPERM
        else { return }
        // A postmaster's working directory is its data folder; one started by hand is respected.
        if (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(pid)/cwd")) != data { unlink(file) }
    }
}

/// The folder of the server's Unix socket, of mode 0700.
enum SocketFolder {
    /// Makes it, or empties it of a dead server's socket: a folder `socket` beside the data or, where that path is too
    /// long for a socket's name (107 bytes) or holds a comma, which separates hosts for libpq, one in /tmp to which
    /// `socket` is then a symbolic link.
    static func prepare(in folder: String, for user: SystemUser) throws(ClusterError) -> String {
        let place = "\(folder)/socket"
        let files = FileManager.default
        if let earlier = try? files.destinationOfSymbolicLink(atPath: place) { remove(earlier, of: folder) }
        let longest = "\(place)/.s.PGSQL.\(PrivateCluster.port)"
        guard longest.utf8.count > 107 || longest.contains(",") else {
            if mkdir(place, 0o700) != 0 && errno != EEXIST { throw .unfit("cannot make \(place)", errno: errno) }
            try hand(place, to: user)
            for suffix in ["", ".lock"] { unlink("\(place)/.s.PGSQL.\(PrivateCluster.port)\(suffix)") }
            return place
        }
        var template = Array("/tmp/ieum-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw ClusterError("cannot make a folder in /tmp", errno: errno) }
        let made = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        unlink(place)
        guard symlink(made, place) == 0 else { throw .unfit("cannot make \(place)", errno: errno) }
        try hand(made, to: user)
        return made
    }

    /// Removes a folder in /tmp; one beside the data stays.
    static func remove(_ socketFolder: String, of folder: String) {
        guard socketFolder.hasPrefix("/tmp/ieum-"), !socketFolder.hasPrefix("\(folder)/") else { return }
        for suffix in ["", ".lock"] { unlink("\(socketFolder)/.s.PGSQL.\(PrivateCluster.port)\(suffix)") }
        rmdir(socketFolder)
    }

    private static func hand(_ path: String, to user: SystemUser) throws(ClusterError) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR,
            lchown(path, user.userID, user.groupID) == 0, chmod(path, 0o700) == 0
        else { throw ClusterError("cannot give \(path) to user \(user.name)", errno: errno) }
    }
}

/// The server's log file, from the moment of a start on.
struct ServerLog: ~Copyable {
    let descriptor: Int32
    private let path: String
    private let start: Int

    /// Opens the file at its end; one of more than 16 MB is put aside first, over the one put aside before.
    init(_ path: String) throws(ClusterError) {
        var status = stat()
        if lstat(path, &status) == 0 && status.st_size > 16 << 20 { rename(path, "\(path).1") }
        descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .unfit("cannot open \(path)", errno: errno) }
        self.path = path
        start = Int(lseek(descriptor, 0, SEEK_END))
    }

    deinit {
        close(descriptor)
    }

    /// What was logged since, at most the last 64 KB.
    var newText: String {
        let added = Int(lseek(descriptor, 0, SEEK_END)) - start
        return SmallFile.read(path, last: max(min(added, 65_536), 0)) ?? ""
    }

    /// An error that quotes the line that tells the reason, and the one before it, which may tell more: what is wrong
    /// in a configuration file stands there.
    func failure(_ what: String) -> ClusterError {
        let lines = newText.split(separator: "\n")
        let isReason = { (line: Substring) in ["FATAL:", "PANIC:", "error:"].contains { line.contains($0) } }
        let last = lines.lastIndex(where: isReason) ?? lines.indices.last
        let reason = last.map { lines[max($0 - 1, 0)...$0].joined(separator: " / ") }
        return ClusterError(what + (reason.map { ": \($0)" } ?? ""), hint: "Its log is \(path).")
    }
}

enum AbsolutePath {
    /// The path from the root on, symbolic links resolved as far as it exists, without `.`, `..` and double slashes.
    static func of(_ path: String) -> String {
        var whole = path
        if !path.hasPrefix("/") { whole = FileManager.default.currentDirectoryPath + "/" + path }
        var existing = whole
        var rest: [String] = []
        while true {
            if let resolved = realpath(existing, nil) {
                defer { free(resolved) }
                let base = String(cString: resolved)
                return rest.isEmpty ? base : (base == "/" ? "" : base) + "/" + rest.reversed().joined(separator: "/")
            }
            guard let slash = existing.lastIndex(of: "/"), existing != "/" else { return whole }
            let last = String(existing[existing.index(after: slash)...])
            if !last.isEmpty && last != "." { rest.append(last) }
            existing = slash == existing.startIndex ? "/" : String(existing[..<slash])
        }
    }
}
