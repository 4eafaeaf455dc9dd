import Glibc

/// Where an export goes: a file that is there when it is whole and not before, or stdout.
final class ExportTarget {
    private let path: String?
    private let draft: String
    private let descriptor: Int32
    private let output: Output
    private var buffer: [UInt8] = []
    private var isFinished = false

    /// Opens a file beside the one that is named; `-` is stdout.
    init(_ path: String, _ output: Output) throws(Failure) {
        self.output = output
        self.path = path == "-" ? nil : path
        guard self.path != nil else {
            draft = ""
            descriptor = -1
            return
        }
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { String(path[...$0]) } ?? ""
        let name = slash.map { String(path[path.index(after: $0)...]) } ?? path
        draft = "\(folder).\(name).\(UInt32.random(in: 0...UInt32.max))"
        descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Self.failure(draft) }
    }

    deinit {
        guard descriptor >= 0 else { return }
        close(descriptor)
        if !isFinished { unlink(draft) }
    }

    /// Takes bytes; they are written when there are enough of them.
    func write(_ bytes: [UInt8]) throws {
        buffer += bytes
        if buffer.count >= 262_144 { try flush() }
    }

    /// All is written: the file takes its name.
    func finish() throws {
        try flush()
        guard let path else { return }
        guard fsync(descriptor) == 0, rename(draft, path) == 0 else { throw Self.failure(path) }
        isFinished = true
    }

    private func flush() throws {
        defer { buffer.removeAll(keepingCapacity: true) }
        guard path != nil else { return try output.data(buffer) }
        var rest = buffer[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                throw Self.failure(draft)
            }
        }
    }

    private static func failure(_ path: String) -> Failure {
        Failure(.refused, code: "output", "\(path) cannot be written: \(String(cString: strerror(errno)))")
    }
}
