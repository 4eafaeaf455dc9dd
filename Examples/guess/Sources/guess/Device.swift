import Foundation
import IeumClient

/// A device of a player's: a folder with its games and its token.
struct Device {
    let name: String
    let folder: URL

    init(name: String) throws {
        self.name = name
        folder = URL(fileURLWithPath: name, isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    func openStore() throws -> GameStore {
        try GameStore(at: folder.appendingPathComponent("games.sqlite"))
    }

    /// The token of the first time; then a new player's, or with a code that of the player who made the code.
    func token(at server: String, code: String?) async throws -> String {
        let file = folder.appendingPathComponent("token")
        if let token = try? String(contentsOf: file, encoding: .utf8) { return token }
        let token =
            if let code {
                try await SyncEngine.link(at: server, code: code, deviceName: name)
            } else {
                try await SyncEngine.register(at: server, deviceName: name)
            }
        // Who has the token is the device: nobody else may read it. On an iPhone it belongs in the keychain.
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        guard FileManager.default.createFile(atPath: file.path, contents: Data(token.utf8), attributes: attributes)
        else { throw CocoaError(.fileWriteUnknown) }
        return token
    }
}
