import FileDraft
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

    /// Writes a game's state to the disk, as a whole or not at all; removes the file of a deleted game.
    func take(_ version: GameVersion) throws {
        let folder = "\(path)/\(version.game.collection)"
        let file = "\(folder)/\(Self.fileName(for: version.game.id))"
        guard let state = version.state else {
            guard unlink(file) == 0 || errno == ENOENT || errno == ENOTDIR else { throw Self.problem("remove", file) }
            return
        }
        try Self.makeFolder(folder)
        let draft = try FileDraft(file, isReplacing: true, isPrivate: false)
        try draft.write(state)
        try draft.finish()
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
