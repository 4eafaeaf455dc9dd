import Arguments
import Foundation

/// A password as libpq reads it: from a file of this process's own that has no name and lies in memory alone.
///
/// Neither a command line nor an environment shows it, not even those of programs that are started here: they are given
/// the file's path below `/proc`, which only the same user can follow, and only while this process runs. Source:
/// PostgreSQL, chapter "libpq", section "The Password File".
final class PassFile {
    /// The value of libpq's `passfile`.
    let path: String
    private let descriptor: Int32

    /// Makes a file that gives one password for every server.
    init(password: String) throws(UsageError) {
        let name = "/ieumd-\(UUID().uuidString)"
        descriptor = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        shm_unlink(name)
        path = "/proc/\(getpid())/fd/\(descriptor)"
        let escaped = password.replacing("\\", with: "\\\\").replacing(":", with: "\\:")
        let line = Array("*:*:*:*:\(escaped)\n".utf8)
        guard descriptor >= 0, fchmod(descriptor, 0o600) == 0,  // whatever the umask is
            line.withUnsafeBytes({ write(descriptor, $0.baseAddress, $0.count) }) == line.count
        else { throw UsageError("the database's password cannot be kept: \(String(cString: strerror(errno)))") }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Reads the first line of a file that is for its owner alone, and makes a password's file of it.
    convenience init(readingFrom file: String) throws(UsageError) {
        let name = "the file \(file) that IEUM_DATABASE_PASSWORD_FILE names"
        let descriptor = open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw UsageError("\(name) cannot be read: \(String(cString: strerror(errno)))") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw UsageError("others than its owner can use \(name) (mode 0\(mode)); run: chmod 600 \(file)")
        }
        guard let data = try? handle.read(upToCount: 65_536), let text = String(validating: data, as: UTF8.self),
            let password = text.split(whereSeparator: \.isNewline).first, text.first?.isNewline == false
        else { throw UsageError("\(name) does not begin with a password") }
        try self.init(password: String(password))
    }
}
