import Foundation
import Glibc
import Testing
import Wire

@testable import IeumClient

@Suite("A home's store")
struct DeviceHomeStoreTests {
    private let folder: TemporaryFolder
    private let home: DeviceHome
    private let identity: Identity
    private let key: GameKey

    init() throws {
        folder = try TemporaryFolder()
        home = try folder.home(at: ServerAddress(host: "127.0.0.1", port: 9))
        identity = try home.identity()
        key = try GameKey(collection: "handle.game", id: "today")
    }

    private func mode(_ path: String) -> UInt32? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : nil
    }

    private func meet(_ store: GameStore, as token: Token = Said.token) throws {
        let signIn = SignIn(player: token.player, device: token.device, token: nil, revision: 1)
        _ = try store.meet(signIn, epoch: Said.epoch, clockOffset: 0, offersRefused: false)
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: home.path).sorted()
    }

    @Test("is made when it is needed, and only then")
    func made() throws {
        #expect(try home.openStoreIfThere(of: identity) == nil)
        #expect(try names() == ["identity.json", "lock", "token"])
        let store = try home.openStore(of: identity)
        try store.restore(key, state: Array("1".utf8), schema: 0)
        #expect(
            try names().filter { $0.hasPrefix("games.sqlite") } == [
                "games.sqlite", "games.sqlite-mark", "games.sqlite-shm", "games.sqlite-wal",
            ])
        #expect(try home.openStoreIfThere(of: identity)?.heldGame(key)?.state == Array("1".utf8))
    }

    @Test("of a game with a schema of its own is opened by a program that knows no types, and stays so")
    func schemaVersion() throws {
        let game = try home.openStore(of: identity, schemaVersion: 3)
        try game.write { transaction in try transaction.save(key, state: Array("{\"n\":1}".utf8)) }
        let store = try home.openStore(of: identity)
        #expect(store.schemaVersion == 3)
        #expect(try store.heldGame(key)?.state == Array("{\"n\":1}".utf8))
        #expect(throws: StoreError.self) { try home.openStore(of: identity, schemaVersion: 2) }
        #expect(try home.openStore(of: identity, schemaVersion: 4).schemaVersion == 4)
    }

    @Test("is its owner's alone, whatever was there before", arguments: [nil, 0o666, 0o400])
    func modes(found: UInt32?) throws {
        if let found {
            #expect(FileManager.default.createFile(atPath: home.storePath, contents: nil))
            chmod(home.storePath, found)
        }
        let store = try home.openStore(of: identity)
        try store.restore(key, state: Array("1".utf8), schema: 0)
        for name in try names() where name.hasPrefix("games.sqlite") {
            #expect(mode(home.path + "/" + name) == 0o600, "\(name)")
        }
        #expect(mode(home.path) == 0o700)
    }

    @Test("of another player is refused, and stays as it is; an empty one serves everybody")
    func otherPlayer() throws {
        let other = Said.newToken()
        try meet(try home.openStore(of: identity), as: other)
        let store = try home.openStore(of: identity)
        try store.restore(key, state: Array("1".utf8), schema: 0)
        let before = try Data(contentsOf: URL(fileURLWithPath: home.storePath))
        #expect {
            try home.openStore(of: identity)
        } throws: { error in
            let error = error as? HomeError
            return error?.kind == .otherPlayer && error?.message.contains(other.player.description) == true
                && error?.hint?.contains("mv ") == true
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: home.storePath)) == before)
    }

    @Test("that is damaged is kept aside, and a new one begun; what is no store stays where it is")
    func damaged() throws {
        try home.openStore(of: identity).restore(key, state: Array("1".utf8), schema: 0)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: home.storePath))
        try file.seek(toOffset: 4_096)
        try file.write(contentsOf: Data(repeating: 0xA5, count: 20_000))
        try file.close()
        let store = try home.openStore(of: identity)
        let copy = try #require(store.damagedCopy)
        #expect(copy.deletingLastPathComponent().path == home.path)
        #expect(try store.heldGames().isEmpty)
        for name in try names() where name.hasPrefix("games.sqlite") {
            #expect(mode(home.path + "/" + name) == 0o600, "\(name)")
        }
        let otherFolder = try TemporaryFolder()
        let other = try otherFolder.home(at: identity.server)
        try Data("a photo".utf8).write(to: URL(fileURLWithPath: other.storePath))
        #expect {
            try other.openStore(of: identity)
        } throws: { ($0 as? StoreError)?.kind == .foreign }
        #expect(try Data(contentsOf: URL(fileURLWithPath: other.storePath)) == Data("a photo".utf8))
    }

    @Test("that is no file is an error that names it")
    func folderInItsPlace() throws {
        mkdir(home.storePath, 0o700)
        #expect {
            try home.openStore(of: identity)
        } throws: { error in
            let error = error as? HomeError
            return error?.kind == .damaged && error?.message.contains(home.storePath) == true
        }
    }

    @Test("that another process keeps is an error after a while")
    func busy() throws {
        let store = try home.openStore(of: identity)
        let other = try home.openStore(of: identity, busyMilliseconds: 1)
        _ = try store.write { _ in
            #expect {
                try other.restore(key, state: nil, schema: 0)
            } throws: {
                ($0 as? StoreError)?.kind == .busy
            }
        }
    }

    @Test("goes aside with another player's identity, and stays with the same player's", arguments: [true, false])
    func replaced(isSamePlayer: Bool) throws {
        let store = try home.openStore(of: identity)
        try meet(store)
        try store.restore(key, state: Array("1".utf8), schema: 0)
        let device = DeviceID(UUID())
        let token = Token(
            player: isSamePlayer ? identity.player : PlayerID(UUID()), device: device, secret: Array(1...32))
        let new = Identity(server: identity.server, deviceName: "again", token: try #require(token))
        let (_, backup) = try home.enroll(isReplacing: true, now: .now) { new }
        let aside = try FileManager.default.contentsOfDirectory(atPath: try #require(backup))
        #expect(aside.contains("games.sqlite") == !isSamePlayer)
        let games = try home.openStore(of: new).heldGames()
        #expect(games.count == (isSamePlayer ? 1 : 0))
        #expect(games[key]?.standing == (isSamePlayer ? .edited : nil))
    }
}
