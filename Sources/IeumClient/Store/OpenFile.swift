import Foundation
import Synchronization

/// A file that a store of this process has open, as long as this value lives.
///
/// POSIX drops all of a process's locks on a file when any descriptor of that file is closed, SQLite's too: another process
/// could then believe to be alone with it. So a file that is open here is not to be looked at past SQLite.
final class OpenFile: Sendable {
    private struct Name: Hashable {
        var device: UInt64
        var inode: UInt64

        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
        }
    }

    private static let counts = Mutex<[Name: Int]>([:])
    private let name: Name

    /// Whether a store of this process has the file open.
    static func isOpen(_ path: String) -> Bool {
        guard let name = Name(path) else { return false }
        return counts.withLock { $0[name] != nil }
    }

    /// Takes note of a file; nil: there is none.
    init?(_ path: String) {
        guard let name = Name(path) else { return nil }
        self.name = name
        Self.counts.withLock { $0[name, default: 0] += 1 }
    }

    deinit {
        Self.counts.withLock { counts in
            let count = (counts[name] ?? 1) - 1
            counts[name] = count > 0 ? count : nil
        }
    }
}
