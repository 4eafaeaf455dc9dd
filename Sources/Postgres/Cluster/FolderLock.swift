import Glibc

/// An exclusive lock on a file, gone with the last process that holds its descriptor, however that process ends.
struct FolderLock: ~Copyable {
    let descriptor: Int32

    /// Takes the lock; nil if another holds it. The descriptor is not inherited unless a child is given it on purpose.
    init?(path: String) throws(ClusterError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .unfit("cannot open \(path)", errno: errno) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            close(descriptor)
            if code == EWOULDBLOCK { return nil }
            throw ClusterError("cannot lock \(path)", errno: code)
        }
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// Gives the lock up at once, also where a child holds the descriptor: one that was given it, or one of another thread
    /// that is between its fork and its exec.
    consuming func unlock() {
        flock(descriptor, LOCK_UN)
    }

    /// Leaves our process's id in the file, for whoever finds it locked.
    func writeOwner() {
        let text = Array("\(getpid())\n".utf8)
        ftruncate(descriptor, 0)
        pwrite(descriptor, text, text.count, 0)
    }

    /// The process's id that the holder of a lock left.
    static func owner(path: String) -> Int32? {
        SmallFile.read(path).flatMap { Int32($0.prefix { $0.isNumber }) }
    }
}

/// Reading and replacing files of a few kilobytes.
enum SmallFile {
    /// The file's text, at most its last `limit` bytes; nil if it cannot be read.
    static func read(_ path: String, last limit: Int = 65_536) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let size = Int(lseek(descriptor, 0, SEEK_END))
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = pread(descriptor, &bytes, limit, off_t(max(size - limit, 0)))
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    /// Puts a text in the place of a file, whole or not at all, and on the disk before it returns. A symbolic link in
    /// its place is replaced, not followed: root writes here into a folder that another user owns.
    static func replace(_ path: String, with text: String, owner: SystemUser) throws(ClusterError) {
        let temporary = "\(path).new"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .unfit("cannot create \(temporary)", errno: errno) }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        let written = write(descriptor, bytes, bytes.count) == bytes.count
        guard written, fchown(descriptor, owner.userID, owner.groupID) == 0, fsync(descriptor) == 0,
            rename(temporary, path) == 0
        else { throw ClusterError("cannot write \(path)", errno: errno) }
    }

    /// Puts a folder's entries on the disk.
    static func syncFolder(_ path: String) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
