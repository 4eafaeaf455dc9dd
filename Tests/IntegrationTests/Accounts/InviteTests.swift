import Foundation
import Postgres
import TestSupport
import Testing

@Suite("invites")
struct InviteTests {
    let database: TestDatabase

    init() throws { database = try TestDatabase.migrated() }

    private func daemon() throws -> DaemonProcess {
        try DaemonProcess(database: database.conninfo, options: ["--registration", "invite"])
    }

    private func run(_ arguments: String...) throws -> (status: Int32, output: String, error: String) {
        try Programs.run("ieumd", ["invite"] + arguments + ["--database", database.conninfo])
    }

    private func codes(_ count: Int) throws -> [String] {
        let result = try run("--count", "\(count)")
        #expect(result.status == 0, "\(result)")
        let codes = result.output.split(separator: "\n").map(String.init)
        #expect(Set(codes).count == count)
        return codes
    }

    private func count(_ table: String) throws -> Int64 {
        try database.connect().query("SELECT count(*) FROM \(table)").int8(0, 0)
    }

    @Test("one lets one player in: not none, not a wrong one, not twice, not an expired or cancelled one")
    func lifeOfAnInvite() throws {
        let daemon = try daemon()
        let codes = try codes(3)
        func register(_ options: String) throws -> String { try RawClient(port: daemon.port).ask("REGISTER\(options)") }
        #expect(try register("").hasPrefix("ERR invite-required "))
        #expect(try register(" invite=0000-0000-0000-0000").hasPrefix("ERR invite-invalid "))
        #expect(try register(" invite=short").hasPrefix("ERR invalid-argument field=invite "))
        // The right locator with another secret, and the other way round.
        let other = codes[0].prefix(5) + codes[1].dropFirst(5)
        #expect(try register(" invite=\(other)").hasPrefix("ERR invite-invalid "))
        #expect(try count("players") == 0)
        let client = try RawClient(port: daemon.port)
        let answer = try client.ask("REGISTER device=phone invite=\(codes[0].lowercased().replacing("-", with: ""))")
        #expect(answer.hasPrefix("OK player="))
        #expect(try client.ask("PUSH g x {\"n\":1}").hasPrefix("OK outcome=created "))
        #expect(try register(" invite=\(codes[0])").hasPrefix("ERR invite-invalid "))

        try database.connect().execute(
            "UPDATE invites SET expires = clock_timestamp() WHERE locator = '\(codes[1].prefix(4))'")
        #expect(try register(" invite=\(codes[1])").hasPrefix("ERR invite-invalid "))
        #expect(try run("--cancel", String(codes[2].prefix(4).lowercased())).status == 0)
        #expect(try register(" invite=\(codes[2])").hasPrefix("ERR invite-invalid "))
        #expect(try run("--cancel", String(codes[2].prefix(4))).status == 1)
        #expect(try run("--cancel", String(codes[0].prefix(4))).status == 1, "a used one stays, for the list")
        #expect(try count("players") == 1)

        let list = try run("--list", "--json")
        let lines = try #require(try JSONSerialization.jsonObject(with: Data(list.output.utf8)) as? [[String: Any]])
        #expect(Set(lines.compactMap { $0["state"] as? String }) == ["used", "expired"])
        #expect(lines.compactMap { $0["player"] as? String } == [fields(answer)["player"]])
        let table = try run("--list")
        for text in [list.output, table.output] {
            for code in codes { #expect(!text.contains(code.dropFirst(4)) && !text.contains(code.suffix(4))) }
        }
        // The database knows no code either.
        let rows = try database.connect().query("SELECT string_agg(i::text, ' ') FROM invites AS i").text(0, 0)
        for code in codes { #expect(!rows.contains(code.suffix(9))) }
    }

    @Test("an open server takes no invite away, and a closed one lets nobody in with one")
    func otherRegistrations() throws {
        let code = try codes(1)[0]
        let open = try DaemonProcess(database: database.conninfo)
        #expect(try RawClient(port: open.port).ask("REGISTER invite=\(code)").hasPrefix("OK "))
        let closed = try DaemonProcess(database: database.conninfo, options: ["--registration", "closed"])
        #expect(try RawClient(port: closed.port).ask("REGISTER invite=\(code)").hasPrefix("ERR registration-closed "))
        let invited = try daemon()
        #expect(try RawClient(port: invited.port).ask("REGISTER invite=\(code)").hasPrefix("OK "))
    }

    @Test("of many that use one at once, at two daemons, exactly one gets in")
    func race() async throws {
        let daemons = try [daemon(), daemon()]
        let codes = try codes(20)
        try await aside {
            for code in codes {
                let clients = try (0..<6).map { try RawClient(port: daemons[$0 % 2].port) }
                for client in clients { try client.send("REGISTER invite=\(code)") }
                let answers = try clients.map { try $0.line() ?? "" }
                #expect(answers.filter { $0.hasPrefix("OK player=") }.count == 1, "\(answers)")
                #expect(answers.filter { $0.hasPrefix("ERR invite-invalid ") }.count == 5)
            }
        }
        #expect(try count("players") == 20)
        #expect(try count("devices") == 20)
    }

    @Test("a daemon that is killed between leaves each invite unused, or used by one player that is there")
    func killed() async throws {
        let codes = try codes(60)
        let database = database
        try await aside {
            for round in 0..<3 {
                let daemon = try DaemonProcess(database: database.conninfo, options: ["--registration", "invite"])
                let clients = try codes.map { _ in try RawClient(port: daemon.port) }
                for (client, code) in zip(clients, codes) { try client.send("REGISTER invite=\(code)") }
                // Some are answered, some under way.
                if round < 2 { _ = try clients[round * 20].line() }
                daemon.kill()
            }
            let daemon = try DaemonProcess(database: database.conninfo, options: ["--registration", "invite"])
            for code in codes {
                let used = try database.connect().query(
                    "SELECT count(*) FROM invites WHERE locator = '\(code.prefix(4))' AND redeemed IS NOT NULL"
                ).int8(0, 0)
                let answer = try RawClient(port: daemon.port).ask("REGISTER invite=\(code)")
                #expect(answer.hasPrefix(used == 1 ? "ERR invite-invalid " : "OK player="), "\(answer)")
            }
        }
        let consistent = try database.connect().query(
            """
            SELECT count(*) FILTER (WHERE i.redeemed IS NOT NULL AND p.player_id IS NOT NULL AND d.player_id IS NOT NULL)
              FROM invites AS i LEFT JOIN players AS p USING (player_id) LEFT JOIN devices AS d USING (player_id)
            """
        ).int8(0, 0)
        #expect(consistent == 60)
        #expect(try count("players") == 60)
    }

    @Test("wrong invites end a connection after five, and what stands in the field does no harm")
    func wrongInvites() throws {
        let daemon = try daemon()
        let guesser = try RawClient(port: daemon.port)
        for number in 1...5 {
            #expect(try guesser.ask("REGISTER invite=0000-0000-0000-000\(number)").hasPrefix("ERR invite-invalid "))
        }
        #expect(try guesser.line()?.hasPrefix("* BYE reason=too-many-tries ") == true)
        let hostile = try RawClient(port: daemon.port)
        for text in ["'; DROP TABLE players; --", "\\u001b[2J", "7K3M-Q9TD-0V5R-ZX2C' OR '1'='1", "%", ""] {
            #expect(try hostile.ask("REGISTER invite=\"\(text)\"").hasPrefix("ERR invalid-argument field=invite "))
        }
        #expect(try count("players") == 0)
        for arguments in [["--cancel", "' OR true --"], ["--cancel", "\u{1B}[2J"]] {
            let result = try Programs.run("ieumd", ["invite"] + arguments + ["--database", database.conninfo])
            #expect(result.status == 1 && !result.error.contains("\u{1B}"), "\(result)")
        }
        for arguments in [
            ["--count", "0"], ["--expires", "soon"], ["--expires", "1e9w"], ["--list", "--cancel", "7K3M"],
        ] {
            #expect(try Programs.run("ieumd", ["invite"] + arguments + ["--database", database.conninfo]).status == 2)
        }
    }

    @Test("ieum register takes one from the environment or from stdin, not from an option, and says what to do without")
    func commandLine() throws {
        let daemon = try daemon()
        let codes = try codes(3)
        func register(
            _ arguments: [String], _ environment: [String: String] = [:], input: String? = nil
        ) throws -> (status: Int32, output: String, error: String) {
            let home = try TestFolder("invite")
            return try Programs.run(
                "ieum", ["register", "--server", "127.0.0.1:\(daemon.port)", "--device", "phone"] + arguments,
                environment: environment.merging(["IEUM_HOME": home.path + "/home"]) { $1 }, input: input)
        }
        let without = try register([])
        #expect(without.status == 1 && without.error.contains("IEUM_INVITE=CODE"), "\(without)")
        #expect(try register([], ["IEUM_INVITE": codes[0]]).status == 0)
        #expect(try register(["--invite", "-"], input: codes[1] + "\n").status == 0)
        let shown = try register(["--invite", codes[2]])
        #expect(
            shown.status == 2 && shown.error.contains("IEUM_INVITE=CODE") && !shown.error.contains(codes[2]), "\(shown)"
        )
        #expect(try register([], ["IEUM_INVITE": codes[2]]).status == 0)
        let again = try register(["--invite", "-"], input: codes[2] + "\n")
        #expect(
            again.status == 1 && again.error.contains("invite-invalid") && !again.error.contains(codes[2]), "\(again)")
        let malformed = try register([], ["IEUM_INVITE": String(codes[2].dropLast())])
        #expect(malformed.status == 2 && !malformed.error.contains(codes[2].dropLast()), "\(malformed)")
    }
}
