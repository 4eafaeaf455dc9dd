import Glibc
import Wire

/// A folder that mirrors a player's games: `COLLECTION/ID.json` holds a game's state, byte for byte.
struct StateFolder {
    private let path: String

    /// A folder, made if it is missing.
    init(path: String) throws(Failure) {
        self.path = path
        try Self.makeFolder(path)
    }

    /// Writes a game's state, as a whole or not at all; removes the file of a deleted game.
    func take(_ version: GameVersion) throws(Failure) {
        let folder = "\(path)/\(version.game.collection)"
        let file = "\(folder)/\(Self.fileName(for: version.game.id))"
        guard let state = version.state else {
            guard unlink(file) == 0 || errno == ENOENT || errno == ENOTDIR else { throw Self.problem("remove", file) }
            return
        }
        try Self.makeFolder(folder)
        let draft = "\(folder)/.\(UInt64.random(in: .min ... .max)).part"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw Self.problem("create", draft) }
        var rest = state[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                break
            }
        }
        let problem = rest.isEmpty && fsync(descriptor) == 0 ? nil : Self.problem("write", draft)
        close(descriptor)
        guard problem == nil, rename(draft, file) == 0 else {
            let failure = problem ?? Self.problem("rename", file)
            unlink(draft)
            throw failure
        }
    }

    /// Lets the names of what was written reach the disk, before the home says that it was handed out.
    func settle(_ collections: Set<String>) throws(Failure) {
        for folder in [path] + collections.map({ "\(path)/\($0)" }) {
            let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            // A collection of which there are only deletions has no folder.
            guard descriptor >= 0 else { continue }
            defer { close(descriptor) }
            // Some file systems cannot flush a folder.
            guard fsync(descriptor) == 0 || errno == EINVAL else { throw Self.problem("flush", folder) }
        }
    }

    /// A file's name for an id, which may hold anything but blanks: what could leave the folder, hide the file or be taken
    /// for an escape is written as `%XX`. Names too long for a file system end in a hash.
    static func fileName(for id: String) -> String {
        var name = ""
        for (index, character) in id.unicodeScalars.enumerated() {
            switch character {
            case "/": name += "%2F"
            case "%": name += "%25"
            case "." where index == 0: name += "%2E"
            default: name.unicodeScalars.append(character)
            }
        }
        guard name.utf8.count > 240 else { return name + ".json" }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in id.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        var head = name
        while head.utf8.count > 200 { head.unicodeScalars.removeLast() }
        return "\(head)~\(String(hash, radix: 16)).json"
    }

    private static func makeFolder(_ path: String) throws(Failure) {
        guard mkdir(path, 0o777) != 0, errno != EEXIST else { return }
        throw problem("make", path)
    }

    private static func problem(_ verb: String, _ path: String) -> Failure {
        Failure(.refused, code: "output", "cannot \(verb) \(path): \(String(cString: strerror(errno)))")
    }
}
