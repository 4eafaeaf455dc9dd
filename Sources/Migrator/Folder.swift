import Glibc

/// A folder of files as the system shows it, with the system's own reason where it refuses.
struct Folder {
    /// Why something cannot be read, in the system's words: `Permission denied`.
    struct Failure: Error {
        var reason: String

        /// The reason of the system's last failure.
        static var last: Failure { Failure(reason: String(cString: strerror(errno))) }
    }

    let path: String

    /// The names of what is in it, in the order of their bytes. One that is not UTF-8 has U+FFFD in it.
    func names() throws(Failure) -> [String] {
        guard let stream = opendir(path) else { throw .last }
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else { break }
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        guard errno == 0 else { throw .last }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// The bytes of a regular file, or of one that a symbolic link leads to.
    func contents(of name: String) throws(Failure) -> [UInt8] {
        // Nobody need be at the other end of a pipe; that it is none is seen next.
        let descriptor = open("\(path)/\(name)", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .last }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .last }
        guard status.st_mode & S_IFMT == S_IFREG else { throw Failure(reason: "not a regular file") }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(clamping: status.st_size))
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 1)
        defer { chunk.deallocate() }
        while true {
            let count = read(descriptor, chunk.baseAddress, chunk.count)
            if count == 0 { return bytes }
            if count > 0 {
                bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: chunk[..<count]))
            } else if errno != EINTR {
                throw .last
            }
        }
    }

    /// Makes a new file, and the folder where it is not there; never writes over one.
    func write(_ name: String, _ bytes: [UInt8]) throws(Failure) {
        guard !path.isEmpty else { throw Failure(reason: String(cString: strerror(ENOENT))) }
        try make()
        let descriptor = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw .last }
        defer { close(descriptor) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno != EINTR { throw .last }
            rest = rest.dropFirst(max(count, 0))
        }
    }

    /// Makes the folder and those that it lies in.
    private func make() throws(Failure) {
        var end = path.startIndex
        while end != path.endIndex {
            end = path[end...].dropFirst().firstIndex(of: "/") ?? path.endIndex
            guard mkdir(String(path[..<end]), 0o777) == 0 || errno == EEXIST else { throw .last }
        }
    }
}
