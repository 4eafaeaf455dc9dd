import Foundation

/// A folder in the temporary folder, or in memory, removed when its object goes.
public final class TestFolder: Sendable {
    /// The folder's path.
    public let path: String

    /// Makes an empty folder that others may pass through, since a server started by root runs as another user.
    ///
    /// - Parameter inMemory: whether it had better be in memory, for what need not survive anything: a server makes and
    ///   drops a database there in a quarter of the time.
    public init(_ name: String = "folder", inMemory: Bool = false) throws {
        let parent = inMemory && TestFolder.hasMemory ? TestFolder.memory : TestFolder.parent
        path = "\(parent)/ieum-test-\(name)-\(getpid())-\(UInt32.random(in: .min ... .max))"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        chmod(path, 0o711)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    static var parent: String {
        getenv("TMPDIR").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
    }

    private static let memory = "/dev/shm"

    /// Whether there is a file system in memory with room for a server.
    private static var hasMemory: Bool {
        var status = statvfs()
        guard statvfs(memory, &status) == 0, access(memory, W_OK) == 0 else { return false }
        return UInt64(status.f_bavail) * UInt64(status.f_frsize) > 2 << 30
    }

    /// Removes what test processes that were killed have left behind: their process's number is in the name.
    static func removeLeftovers() {
        let files = FileManager.default
        for parent in [parent, memory] {
            for name in (try? files.contentsOfDirectory(atPath: parent)) ?? [] where name.hasPrefix("ieum-test-") {
                let parts = name.split(separator: "-")
                guard parts.count >= 2, let pid = Int32(parts[parts.count - 2]), kill(pid, 0) != 0, errno == ESRCH
                else {
                    continue
                }
                try? files.removeItem(atPath: "\(parent)/\(name)")
            }
        }
    }
}
