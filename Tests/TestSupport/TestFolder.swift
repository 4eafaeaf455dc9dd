import Foundation

/// A folder in the temporary folder, removed when its object goes.
public final class TestFolder: Sendable {
    /// The folder's path.
    public let path: String

    /// Makes an empty folder that others may pass through, since a server started by root runs as another user.
    public init(_ name: String = "folder") throws {
        path = "\(TestFolder.parent)/ieum-test-\(name)-\(getpid())-\(UInt32.random(in: .min ... .max))"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        chmod(path, 0o711)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    static var parent: String {
        getenv("TMPDIR").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
    }

    /// Removes what test processes that were killed have left behind: their process's number is in the name.
    static func removeLeftovers() {
        let files = FileManager.default
        for name in (try? files.contentsOfDirectory(atPath: parent)) ?? [] where name.hasPrefix("ieum-test-") {
            let parts = name.split(separator: "-")
            guard parts.count >= 2, let pid = Int32(parts[parts.count - 2]), kill(pid, 0) != 0, errno == ESRCH else {
                continue
            }
            try? files.removeItem(atPath: "\(parent)/\(name)")
        }
    }
}
