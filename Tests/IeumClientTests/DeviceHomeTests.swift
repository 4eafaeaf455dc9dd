import Foundation
import Glibc
import Testing
import Wire

@testable import IeumClient

@Suite("A device's home")
struct DeviceHomeTests {
    private let folder: TemporaryFolder
    private let server = ServerAddress(host: "games.example.org", port: 4386)

    init() throws {
        folder = try TemporaryFolder()
    }

    private var path: String { folder.path + "/home" }

    private func mode(_ name: String) -> UInt32 {
        var status = stat()
        return stat(path + name, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    private func failure<Value>(_ body: () throws -> Value) -> HomeError? {
        do {
            _ = try body()
            return nil
        } catch {
            return error as? HomeError
        }
    }

    @Test(
        "is where the environment says",
        arguments: [
            (["IEUM_HOME": "/a", "XDG_CONFIG_HOME": "/b", "HOME": "/c"], "/a"),
            (["IEUM_HOME": "", "XDG_CONFIG_HOME": "/b", "HOME": "/c"], "/b/ieum"),
            (["XDG_CONFIG_HOME": "b", "HOME": "/c"], "/c/.config/ieum"),
            (["HOME": "/c"], "/c/.config/ieum"),
        ])
    func location(environment: [String: String], path: String) throws {
        #expect(try DeviceHome.located(by: environment).path == path)
    }

    @Test("is nowhere without any of its variables")
    func nowhere() {
        #expect(failure { try DeviceHome.located(by: [:]) }?.kind == .nowhere)
    }

    @Test("keeps an identity, its files for the owner alone and the token in none but its own")
    func keepsIdentity() throws {
        let home = DeviceHome(path: path + "/deep/inside")
        let token = Said.newToken()
        let identity = Identity(server: server, deviceName: "거실 \"TV\"", token: token)
        _ = try home.enroll(isReplacing: false, now: .now) { identity }
        #expect(try home.identity() == identity)
        #expect(mode("/deep/inside") == 0o700)
        #expect(mode("/deep/inside/token") == 0o600)
        #expect(mode("/deep/inside/identity.json") == 0o600)
        let names = try FileManager.default.contentsOfDirectory(atPath: home.path)
        #expect(Set(names) == ["token", "identity.json", "lock"])
        let card = try String(contentsOfFile: home.path + "/identity.json", encoding: .utf8)
        let secret = token.text.split(separator: ".")[2]
        #expect(!card.contains(secret))
        #expect(!"\(identity)".contains(secret) && !String(reflecting: identity).contains(secret))
    }

    @Test(
        "keeps whom it trusts and how it shows itself",
        arguments: [
            ServerTrust.system, .authorities(file: "/etc/ieum/authority.pem"),
            ServerTrust.Fingerprint(String(repeating: "ab", count: 32)).map(ServerTrust.pinned),
        ])
    func keepsTrust(trust: ServerTrust?) throws {
        let trust = try #require(trust)
        for certificate in [nil, ClientCertificate(file: "/a.pem", key: "/a.key")] {
            let (home, token) = (DeviceHome(path: path + "/\(UUID())"), Said.token)
            for isSecure in [true, false] {
                let server = ServerAddress(
                    host: "games.example.org", isSecure: isSecure, trust: trust, certificate: certificate)
                let identity = Identity(server: server, deviceName: "phone", token: token)
                _ = try home.enroll(isReplacing: true, now: .now) { identity }
                #expect(try home.identity() == identity)
            }
        }
    }

    @Test("without an identity says how to get one")
    func noIdentity() {
        let error = failure { try DeviceHome(path: path).identity() }
        #expect(error?.kind == .noIdentity)
        #expect(error?.hint?.contains("ieum register --server") == true)
    }

    @Test("never gives a second identity by accident, and does not even ask the server for one")
    func refusesSecond() throws {
        let home = try folder.home(at: server)
        let before = try home.identity()
        let error = failure {
            try home.enroll(isReplacing: false, now: .now) {
                Issue.record("a server was asked")
                return before
            }
        }
        #expect(error?.kind == .identityExists)
        #expect(error?.hint?.contains("--replace") == true)
        #expect(try home.identity() == before)
    }

    @Test("keeps the identity that is replaced, and what it had seen")
    func replaces() throws {
        let home = try folder.home(at: server)
        let old = try home.identity()
        try home.updateSeen { $0.meet(epoch: Said.epoch) }
        let new = Identity(server: server, deviceName: "new", token: Said.newToken())
        let (_, backup) = try home.enroll(isReplacing: true, now: .now) { new }
        #expect(try home.identity() == new)
        #expect(try home.seen() == Seen())
        let kept = DeviceHome(path: try #require(backup))
        #expect(try kept.identity() == old)
        #expect(try kept.seen().epoch == Said.epoch)
    }

    @Test("stays without an identity, and free for the next try, when the server gives none")
    func failedEnrolling() throws {
        let home = DeviceHome(path: path)
        #expect(throws: ClientError.timedOut(after: .seconds(1))) {
            try home.enroll(isReplacing: false, now: .now) { throw ClientError.timedOut(after: .seconds(1)) }
        }
        #expect(failure { try home.identity() }?.kind == .noIdentity)
        _ = try folder.home(at: server)
    }

    @Test("asks no server when it could not keep the answer")
    func unwritable() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        // Root writes anywhere, so the folder's place is taken by a file instead.
        _ = FileManager.default.createFile(atPath: path + "/home", contents: Data())
        let error = failure {
            try DeviceHome(path: path + "/home").enroll(isReplacing: false, now: .now) {
                Issue.record("a server was asked")
                throw ClientError.unreachable("")
            }
        }
        #expect(error?.kind == .system(ENOTDIR))
    }

    @Test("refuses a token that others could read, and says how to close it", arguments: [0o640, 0o604, 0o620, 0o666])
    func exposedToken(mode: Int) throws {
        let home = try folder.home(at: server)
        chmod(home.path + "/token", UInt32(mode))
        let error = failure { try home.identity() }
        #expect(error?.kind == .exposed)
        #expect(error?.hint?.contains("chmod 600 \(home.path)/token") == true)
    }

    @Test(
        "signs nobody in where others could have the token sent elsewhere, and says how to close it",
        arguments: [
            ("", 0o777, "chmod 700 "), ("", 0o770, "chmod 700 "), ("", 0o702, "chmod 700 "),
            ("/identity.json", 0o666, "chmod 600 "), ("/identity.json", 0o620, "chmod 600 "),
            ("/identity.json", 0o602, "chmod 600 "),
        ])
    func changeable(name: String, mode: Int, command: String) throws {
        let home = try folder.home(at: server)
        let path = home.path + name
        chmod(path, UInt32(mode))
        let error = failure { try home.identity() }
        #expect(error?.kind == .exposed)
        #expect(error?.hint?.contains(command + path) == true, "\(String(describing: error))")
        // Others may look at both: neither is a secret.
        chmod(path, name.isEmpty ? 0o755 : 0o644)
        #expect(failure { try home.identity() } == nil)
    }

    @Test(
        "of somebody else is none of ours, but root's is, and root may look into any",
        arguments: [
            (1000, 0o700, 1000, true), (1001, 0o700, 1000, false), (1001, 0o755, 1000, false),
            (0, 0o755, 1000, true), (0, 0o777, 1000, false), (1000, 0o700, 0, true), (1000, 0o770, 0, false),
        ])
    func owners(owner: UInt32, mode: UInt32, user: UInt32, isSafe: Bool) {
        #expect(PrivateFolder.isOwnersAlone(owner: owner, mode: mode, for: user) == isSafe)
    }

    @Test("is not made in a folder that others can write", arguments: [0o777, 0o770, 0o702])
    func exposedFolder(mode: Int) throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        chmod(path, UInt32(mode))
        let error = failure { try folder.home(at: server) }
        #expect(error?.kind == .exposed)
        #expect(error?.hint?.contains("chmod 700 \(path)") == true)
    }

    @Test(
        "names a damaged file and leaves it as it is",
        arguments: [
            ("identity.json", ""), ("identity.json", "{"), ("identity.json", "[1]"),
            ("identity.json", "{\"server\":1}"),
            ("identity.json", String(repeating: " ", count: 70_000)), ("token", ""), ("token", "abc"),
            ("token", String(repeating: "A", count: 89)), ("token", String(repeating: "x", count: 5_000)),
            ("token", "\u{0}\u{1}"), ("seen.json", "null"), ("seen.json", "{\"cursor\":-1,\"games\":{}}"),
            ("seen.json", "{\"cursor\":1,\"games\":{\"one\":{\"revision\":1}}}"),
            ("seen.json", "{\"cursor\":1,\"games\":{\"a b\":{\"revision\":-1}}}"),
            ("seen.json", "{\"cursor\":1,\"games\":{\"a b\":{\"revision\":1,\"stamp\":\"yesterday\"}}}"),
            ("seen.json", "{\"cursor\":99999999999999999999,\"games\":{}}"),
            ("seen.json", "{\"cursor\":1,\"epoch\":\"x\",\"games\":{}}"), ("seen.json", "null"), ("seen.json", "[]"),
            ("identity.json", "null"), ("identity.json", "[]"), ("identity.json", "\u{FEFF}[]"),
        ])
    func damaged(name: String, text: String) throws {
        let home = try folder.home(at: server)
        let file = home.path + "/" + name
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        chmod(file, 0o600)
        let error = failure {
            if name == "seen.json" { try home.updateSeen { $0.pulled(upTo: 9) } } else { _ = try home.identity() }
        }
        #expect(error?.kind == .damaged)
        #expect(error?.message.contains(file) == true)
        // Every message says what is of the wrong kind.
        #expect(error?.message.contains("  ") == false && error?.message.contains(":  is") == false)
        #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == Data(text.utf8))
    }

    @Test("takes no token that belongs to another card, no pipe and no missing token for its own")
    func mixedUp() throws {
        let home = try folder.home(at: server)
        let token = home.path + "/token"
        try Data(Said.newToken().text.utf8).write(to: URL(fileURLWithPath: token))
        chmod(token, 0o600)
        #expect(failure { try home.identity() }?.kind == .damaged)
        unlink(token)
        #expect(failure { try home.identity() }?.kind == .damaged)
        mkfifo(token, 0o600)
        #expect(failure { try home.identity() }?.kind == .damaged)
    }

    @Test("loses nothing that two writers see at the same time")
    func concurrentSeeing() async throws {
        let home = try folder.home(at: server)
        let writers = 4
        let games = 25
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<writers {
                group.addTask {
                    for game in 0..<games {
                        let key = try GameKey(collection: "c\(writer)", id: "g\(game)")
                        try home.updateSeen { $0.saw(key, revision: Revision(game + 1), stamp: Said.stamp) }
                    }
                }
            }
            try await group.waitForAll()
        }
        let seen = try home.seen()
        for writer in 0..<writers {
            for game in 0..<games {
                #expect(seen.base(for: try GameKey(collection: "c\(writer)", id: "g\(game)")) == Revision(game + 1))
            }
        }
    }

    @Test("keeps nothing of a file that a killed process had begun")
    func drafts() throws {
        let home = try folder.home(at: server)
        let begun = ".seen.json.draft"
        try Data(repeating: 0x7B, count: 100_000).write(to: URL(fileURLWithPath: path + "/" + begun))
        try home.updateSeen { $0.pulled(upTo: 2) }
        #expect(try home.seen().cursor == 2)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasPrefix(".") } == [])
    }

    @Test("that another process holds is an error after a while, not a wait without end")
    func locked() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        let descriptor = open(path + "/lock", O_RDWR | O_CREAT, 0o600)
        defer { close(descriptor) }
        #expect(flock(descriptor, LOCK_EX) == 0)
        let error = failure { try PrivateFolder(path: path).whileLocked(patience: .milliseconds(30)) {} }
        #expect(error?.kind == .locked)
    }
}
