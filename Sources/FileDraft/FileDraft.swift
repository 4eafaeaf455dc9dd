import Glibc

/// A file that is there when it is whole, and not before.
///
/// It is written without a name (`O_TMPFILE`), so that nothing is left of it whenever its writer ends, but for the instant in
/// which it takes another's place. Where the file system cannot do that, it has a hidden name beside its own while it is
/// written, which an end by SIGKILL leaves.
public final class FileDraft {
    /// Why the file cannot be written.
    public struct Failure: Error, Sendable {
        /// Which file.
        public var path: String
        /// The `errno`; `EEXIST`: it is there already.
        public var number: Int32

        /// One line.
        public var message: String {
            number == EEXIST
                ? "\(path) is there already" : "\(path) cannot be written: \(String(cString: strerror(number)))"
        }
    }

    private let path: String
    private let folder: String
    private let isReplacing: Bool
    private let isPrivate: Bool
    /// A name of the file's while it is not finished.
    private var hiddenName: String?
    private let descriptor: Int32
    private var buffer: [UInt8] = []

    /// Begins a file.
    /// - Parameters:
    ///   - isReplacing: whether it takes the place of a file that is there; otherwise that is a failure, at once.
    ///   - isPrivate: whether only its owner can read it, whatever the umask; otherwise the umask says who can.
    public init(_ path: String, isReplacing: Bool, isPrivate: Bool = true) throws(Failure) {
        self.path = path
        self.isReplacing = isReplacing
        self.isPrivate = isPrivate
        let mode: mode_t = isPrivate ? 0o600 : 0o666
        let slash = path.lastIndex(of: "/")
        folder = slash.map { String(path[...$0]) } ?? "./"
        var status = stat()
        if lstat(path, &status) == 0 {
            guard isReplacing else { throw Failure(path: path, number: EEXIST) }
            // A device, a pipe or a folder is not replaced by a file, whoever asks.
            guard [S_IFREG, S_IFLNK].contains(status.st_mode & S_IFMT) else {
                throw Failure(path: path, number: status.st_mode & S_IFMT == S_IFDIR ? EISDIR : EINVAL)
            }
        }
        let unnamed = open(folder, Self.temporary | O_WRONLY | O_CLOEXEC, mode)
        if unnamed >= 0 {
            descriptor = unnamed
            return
        }
        // What a file system without it answers; an old kernel takes it for an attempt to write to a folder.
        guard [EOPNOTSUPP, EISDIR, EINVAL].contains(errno) else { throw Failure(path: path, number: errno) }
        let name = Self.hiddenName(of: path, folder)
        descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
        guard descriptor >= 0 else { throw Failure(path: path, number: errno) }
        hiddenName = name
    }

    deinit {
        guard descriptor >= 0 else { return }
        close(descriptor)
        if let hiddenName { unlink(hiddenName) }
    }

    /// Takes bytes; they are written when there are enough of them.
    public func write(_ bytes: [UInt8]) throws(Failure) {
        buffer += bytes
        if buffer.count >= 262_144 { try flush() }
    }

    /// All is written: it is brought to the disk, and the file takes its name.
    public func finish() throws(Failure) {
        try flush()
        guard !isPrivate || fchmod(descriptor, 0o600) == 0, fsync(descriptor) == 0 else {
            throw Failure(path: path, number: errno)
        }
        if isReplacing {
            let name = hiddenName ?? Self.hiddenName(of: path, folder)
            if hiddenName == nil { try link(to: name) }
            hiddenName = name
            guard rename(name, path) == 0 else { throw Failure(path: path, number: errno) }
            hiddenName = nil
        } else {
            try link(to: path)
        }
        // The name, too, is to outlive a power cut.
        let directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if directory >= 0 {
            fsync(directory)
            close(directory)
        }
    }

    /// Gives the file a name, unless there is a file of that name.
    private func link(to name: String) throws(Failure) {
        let source = hiddenName ?? "/proc/self/fd/\(descriptor)"
        guard linkat(AT_FDCWD, source, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 else {
            throw Failure(path: path, number: errno)
        }
    }

    private func flush() throws(Failure) {
        defer { buffer.removeAll(keepingCapacity: true) }
        var rest = buffer[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                throw Failure(path: path, number: errno)
            }
        }
    }

    private static func hiddenName(of path: String, _ folder: String) -> String {
        let name = path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path[...]
        return "\(folder).\(name).\(UInt32.random(in: 0...UInt32.max))"
    }

    /// `O_TMPFILE`, which Swift does not see: a macro of two others.
    private static let temporary = 0o20_000_000 | O_DIRECTORY
}
