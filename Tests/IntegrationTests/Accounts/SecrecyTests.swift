import Foundation
import Postgres
import TestSupport
import Testing
import Wire

@Suite("tokens, codes and invites")
struct SecrecyTests {
    /// The command lines and environments of all processes but this one that a user could read.
    private func processList() -> String {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.filter { Int($0) != nil }.compactMap { id in
            FileManager.default.contents(atPath: "/proc/\(id)/cmdline").map { String(decoding: $0, as: UTF8.self) }
        }.joined(separator: "\n")
    }

    @Test("stand in no log, process list, error text or row, in a run that uses them all, rightly and wrongly")
    func nowhere() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(
            database: database.conninfo, options: ["--registration", "invite", "--log", "debug"])
        var secrets: [String] = []
        var said = ""
        let invites = try Programs.run("ieumd", ["invite", "--count", "3", "--database", database.conninfo])
            .output.split(separator: "\n").map(String.init)
        secrets += invites.flatMap { [String($0.dropFirst(5)), String($0.dropFirst(5)).replacing("-", with: "")] }

        let phone = try RawClient(port: daemon.port)
        let token = try #require(fields(try phone.ask("REGISTER device=phone invite=\(invites[0])"))["token"])
        let new = try #require(fields(try phone.ask("ROTATE"))["token"])
        let code = try #require(fields(try phone.ask("PAIR"))["code"])
        let tablet = try RawClient(port: daemon.port)
        let linked = try #require(fields(try tablet.ask("LINK \(code) device=tablet"))["token"])
        secrets += [token, new, linked].map { String($0.suffix(43)) } + [String(code.suffix(4)) + "\""]
        let wrong = try RawClient(port: daemon.port)
        for line in [
            "LOGIN \(token.dropLast(4))AAAA", "LOGIN \(token) \(token)", "LOGIN x\(token)", "LINK \(code)",
            "REGISTER invite=\(invites[0])", "REGISTER invite=\(invites[1]) invite=\(invites[1])",
            "REGISTER invite=\(invites[1])X",
        ] {
            said += try wrong.ask(line) + "\n"
        }
        #expect(try RawClient(port: daemon.port).ask("LOGIN \(new)").hasPrefix("OK "))

        // The command line, watched while it waits for a server that says nothing.
        let silent = try SilentListener()
        let home = try TestFolder("secrecy")
        let program = Process()
        program.executableURL = Programs.url("ieum")
        program.arguments = [
            "register", "--server", "127.0.0.1:\(silent.port)", "--device", "phone", "--timeout", "30",
        ]
        program.environment = Sanitizer.environment.merging(
            ["IEUM_HOME": home.path + "/home", "IEUM_INVITE": invites[2]]) { $1 }
        program.standardOutput = FileHandle.nullDevice
        program.standardError = FileHandle.nullDevice
        try program.run()
        defer { kill(program.processIdentifier, SIGKILL) }
        try eventually(60, "it runs") { processList().contains("--server\0127.0.0.1:\(silent.port)") }
        let processes = processList()
        kill(program.processIdentifier, SIGKILL)
        program.waitUntilExit()

        let connection = try database.connect()
        let tables = try connection.query(
            "SELECT c.relname::text FROM pg_class AS c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"
        )
        var rows = ""
        for row in 0..<tables.rowCount {
            let table = try tables.text(row, 0)
            rows += try connection.query("SELECT coalesce(string_agg(t::text, ' '), '') FROM \(table) AS t").text(0, 0)
        }
        #expect(rows.count > 500 && daemon.log.contains("event=started"))
        // Nor in the rows as bytes, which a table shows in hexadecimal digits: of a token the secret, of a code its letters.
        for (secret, bytes) in [token, new, linked].map({ ($0, Array(Token($0)?.secret.prefix(16) ?? [])) })
            + (invites + [code]).map({ ($0, Array($0.replacing("-", with: "").utf8)) })
        {
            let digits = bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
            #expect(digits.count >= 16 && !rows.contains(digits), "\(secret) stands in the rows")
        }
        for secret in secrets {
            for (place, text) in [("log", daemon.log), ("processes", processes), ("answers", said), ("rows", rows)] {
                #expect(!text.contains(secret), "\(secret) stands in the \(place)")
            }
        }
    }

    @Test(
        "a login finds its device by key and compares digests; nothing but the right secret of the right device gets in"
    )
    func logins() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (_, first) = try newPlayer(daemon)
        let (_, second) = try newPlayer(daemon)
        let zero = String(repeating: "A", count: 43)
        for token in [
            "\(first.prefix(46))\(second.suffix(43))", "\(second.prefix(46))\(first.suffix(43))",
            "\(first.prefix(23))\(second.dropFirst(23))", "\(first.prefix(46))\(zero)",
        ] {
            #expect(try RawClient(port: daemon.port).ask("LOGIN \(token)").hasPrefix("ERR login-failed "), "\(token)")
        }
        #expect(try RawClient(port: daemon.port).ask("LOGIN \(first)").hasPrefix("OK "))
    }

    @Test("tokens have 256 random bits, however they are given: by registering, by a code, by rotating")
    func tokens() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        var secrets: [[UInt8]] = []
        func take(_ answer: String) throws {
            let text = try #require(fields(answer)["token"], "\(answer)")
            secrets.append(try #require(Token(text), "\(answer)").secret)
        }
        for _ in 0..<20 {
            let client = try RawClient(port: daemon.port)
            try take(try client.ask("REGISTER"))
            let code = try #require(fields(try client.ask("PAIR"))["code"])
            try take(try RawClient(port: daemon.port).ask("LINK \(code)"))
            try take(try client.ask("ROTATE"))
        }
        #expect(secrets.allSatisfy { $0.count == 32 })
        // The bytes at each place differ, of each kind of token.
        for kind in 0..<3 {
            let these = secrets.indices.filter { $0 % 3 == kind }.map { secrets[$0] }
            for place in 0..<32 { #expect(Set(these.map { $0[place] }).count > 10, "kind \(kind), byte \(place)") }
        }
    }

    @Test("pairing codes have 40 bits, hold ten minutes and five wrong tries, and belong to their player")
    func pairingCodes() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (phone, _) = try newPlayer(daemon)
        var codes: Set<String> = []
        for _ in 0..<50 { codes.insert(try #require(fields(try phone.ask("PAIR"))["code"])) }
        // Eight characters of 32 each; every place differs among fifty.
        #expect(codes.count == 50 && codes.allSatisfy { $0.count == 9 })
        for place in [0, 1, 2, 3, 5, 6, 7, 8] { #expect(Set(codes.map { Array($0)[place] }).count > 10) }
        let held = try database.connect().query(
            "SELECT count(*), bool_and(expires = created + interval '10 minutes' AND tries_left = 5) FROM pairing_codes"
        )
        #expect(try held.int8(0, 0) == 1 && held.bool(0, 1), "a player has one code, the last")
        let code = try #require(fields(try phone.ask("PAIR"))["code"])
        try database.connect().execute("UPDATE pairing_codes SET expires = clock_timestamp()")
        #expect(try RawClient(port: daemon.port).ask("LINK \(code)").hasPrefix("ERR code-invalid "))
    }
}

/// A port at which connections are taken and nothing is said.
private final class SilentListener {
    let port: Int
    private let descriptor: Int32

    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 8) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        self.descriptor = descriptor
        port = Int(UInt16(bigEndian: address.sin_port))
        guard isBound else { throw SocketError(call: "listen", code: errno) }
    }

    deinit { close(descriptor) }
}
