import Glibc
import Wire

/// The folder in which a device keeps its identity; two homes on one machine are two devices.
///
/// | file | holds | mode |
/// |---|---|---|
/// | `identity.json` | server, player, device, the device's name | 0600 |
/// | `token` | the secret that signs the device in, and nothing else | 0600 |
/// | `seen.json` | how far the home has seen its player's games, see ``Seen`` | 0600 |
/// | `games.sqlite` | the device's copy of the games, see ``openStore(of:schemaVersion:busyMilliseconds:)``; made when it is needed | 0600 |
/// | `lock` | nothing; `flock`ed while one of the JSON files or the token is changed | 0600 |
/// | `replaced-<time>/` | the identity that `--replace` put aside | 0700 |
///
/// The folder is made with mode 0700. Where others could write into it, or change `identity.json`, nobody is signed in: they
/// could have the token sent to a server of theirs. A file that cannot be understood is an error that names it, and stays as it is.
package struct DeviceHome: Sendable {
    /// The folder's path.
    package var path: String { folder.path }

    let folder: PrivateFolder

    private enum File {
        static let identity = "identity.json"
        static let token = "token"
        static let seen = "seen.json"
    }

    /// A home in a folder, which need not exist yet.
    package init(path: String) {
        folder = PrivateFolder(path: path)
    }

    /// The home that the environment names: `$IEUM_HOME`, else `$XDG_CONFIG_HOME/ieum`, else `~/.config/ieum`.
    package static func located(by environment: [String: String]) throws(HomeError) -> DeviceHome {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let path = value("IEUM_HOME") { return DeviceHome(path: path) }
        // The XDG specification has a relative path ignored.
        if let path = value("XDG_CONFIG_HOME"), path.hasPrefix("/") { return DeviceHome(path: path + "/ieum") }
        if let path = value("HOME") { return DeviceHome(path: path + "/.config/ieum") }
        throw HomeError(
            .nowhere, "neither IEUM_HOME nor HOME is set",
            hint: "Name a folder for this device: export IEUM_HOME=/path/to/folder")
    }

    // MARK: The identity

    /// Who this device is.
    /// - Throws: ``HomeError``: `noIdentity`, `exposed`, `damaged`, `system`.
    package func identity() throws(HomeError) -> Identity {
        let hint =
            "Register a new player: ieum register --server HOST:PORT --device NAME; or join yours: ieum link CODE …"
        // It says where the token is sent, and whom to trust there.
        try folder.check()
        guard let card = try folder.read(File.identity, limit: 65_536, safety: .fromChanges) else {
            throw HomeError(.noIdentity, "there is no identity in \(path)", hint: hint)
        }
        let tokenPath = folder.path(of: File.token)
        guard let text = try folder.read(File.token, limit: 4_096, safety: .secret) else {
            throw .damaged(tokenPath, "it is gone, though \(File.identity) is there", hint: hint)
        }
        guard let token = Token(String(decoding: text, as: UTF8.self).trimmingLineEnd) else {
            throw .damaged(tokenPath, "it holds no token")
        }
        do throws(JSONFile.Problem) {
            return try Identity(card: card, token: token)
        } catch {
            throw .damaged(folder.path(of: File.identity), error.reason)
        }
    }

    /// Gives the home an identity, which `obtain` gets from a server.
    ///
    /// All that can be known to fail is tried before `obtain` is called, so that no token is got and then lost; and the
    /// home is locked all the while, so that of two processes only one obtains an identity.
    /// - Parameter isReplacing: puts an identity that is there aside instead of refusing.
    /// - Returns: the identity, and the path of the folder in which the replaced one is kept.
    /// - Throws: ``HomeError``, `identityExists` among them, and what `obtain` throws.
    package func enroll(
        isReplacing: Bool, now: Timestamp, _ obtain: () throws -> Identity
    ) throws -> (identity: Identity, backup: String?) {
        try folder.create()
        return try folder.whileLocked {
            let isTaken = try holdsSomething()
            if isTaken, !isReplacing {
                throw HomeError(
                    .identityExists, "\(path) holds an identity already\(description(of: try? self.identity()))",
                    hint: "Keep it, or take another home: IEUM_HOME=/path/to/folder ieum …, or add --replace, "
                        + "which keeps the old identity aside")
            }
            // A full disk or a read-only folder shows here.
            try folder.write(".probe", [UInt8](repeating: 0x20, count: 4_096))
            unlink(folder.path(of: ".probe"))
            let identity = try obtain()
            var backup: String?
            if isTaken {
                let name = "replaced-\(now)"
                let isSamePlayer = (try? self.identity().player) == identity.player
                // The same player's games stay, and with them what was saved here and not sent yet.
                try folder.setAside(
                    [File.identity, File.token, File.seen] + (isSamePlayer ? [] : Self.storeFiles), into: name)
                backup = folder.path(of: name)
            }
            // The token first: identity.json says that the identity is complete.
            try folder.write(File.token, Array((identity.token.text + "\n").utf8))
            try folder.write(File.identity, identity.card)
            return (identity, backup)
        }
    }

    /// Puts another token of the same device in the place of the one that is kept; `obtain` gets it from the server.
    ///
    /// It is on disk before it is used for the first time, and until then the old one holds: whatever breaks, one of the two that
    /// are known here signs in.
    package func replaceToken(_ obtain: () throws -> Token) throws {
        try folder.whileLocked {
            // A full disk or a read-only folder shows here.
            try folder.write(".probe", [UInt8](repeating: 0x20, count: 4_096))
            unlink(folder.path(of: ".probe"))
            try folder.write(File.token, Array((try obtain().text + "\n").utf8))
        }
    }

    /// Keeps another name of this device.
    package func rename(to name: String) throws {
        try folder.whileLocked {
            var identity = try identity()
            identity.deviceName = name
            try folder.write(File.identity, identity.card)
        }
    }

    private func holdsSomething() throws(HomeError) -> Bool {
        var status = stat()
        for name in [File.identity, File.token] {
            if lstat(folder.path(of: name), &status) == 0 { return true }
            guard errno == ENOENT else { throw .system("stat", folder.path(of: name)) }
        }
        return false
    }

    private func description(of identity: Identity?) -> String {
        identity.map { " (player \($0.player) at \($0.server))" } ?? ""
    }

    // MARK: What was seen

    /// What the home has seen.
    package func seen() throws(HomeError) -> Seen {
        guard let text = try folder.read(File.seen, limit: 64 << 20) else { return Seen() }
        do throws(JSONFile.Problem) {
            return try Seen(text: text)
        } catch {
            let path = folder.path(of: File.seen)
            throw .damaged(
                path, error.reason,
                hint: "It was left as it is. To start over: mv \(path.shellQuoted) \("\(path).damaged".shellQuoted); "
                    + "ieum pull --since 0")
        }
    }

    /// Changes what the home has seen, one process at a time; writes only if something is different then.
    @discardableResult
    package func updateSeen<Value>(_ change: (inout Seen) -> Value) throws -> Value {
        try folder.whileLocked {
            let old = try seen()
            var new = old
            let value = change(&new)
            if new != old { try folder.write(File.seen, new.text) }
            return value
        }
    }
}

extension String {
    /// The text without the line break at its end.
    fileprivate var trimmingLineEnd: String {
        var text = self[...]
        while let last = text.unicodeScalars.last, last == "\n" || last == "\r" { text = text.dropLast() }
        return String(text)
    }
}
