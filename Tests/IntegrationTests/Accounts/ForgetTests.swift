import Foundation
import Postgres
import TestSupport
import Testing

@testable import IeumClient

@Suite("ieumd forget")
struct ForgetTests {
    /// The tables in which something of a player stands, with how many rows.
    private func traces(of player: String, _ database: TestDatabase) throws -> [String: Int64] {
        let connection = try database.connect()
        let tables = try connection.query(
            """
            SELECT c.table_name::text FROM information_schema.columns AS c JOIN information_schema.tables AS t USING (table_schema, table_name)
             WHERE c.table_schema = 'public' AND c.column_name = 'player_id' AND t.table_type = 'BASE TABLE' ORDER BY 1
            """)
        #expect(tables.rowCount >= 9)
        var traces: [String: Int64] = [:]
        for row in 0..<tables.rowCount {
            let table = try tables.text(row, 0)
            let count = try connection.query("SELECT count(*) FROM \(table) WHERE player_id = '\(player)'").int8(0, 0)
            if count > 0 { traces[table] = count }
        }
        return traces
    }

    @Test("while two daemons push for the player: sessions end, nothing remains, and nobody else loses anything")
    func whilePushing() async throws {
        try await aside {
            let bench = try TwoDaemons(options: ["--registration", "invite"])
            let invite = try bench.operate("invite").output.trimmingCharacters(in: .newlines)
            let phone = try RawClient(port: bench.daemons[0].port)
            let answer = fields(try phone.ask("REGISTER device=phone invite=\(invite)"))
            let (player, token) = try (#require(answer["player"]), #require(answer["token"]))
            let other = try bench.operate("invite").output.trimmingCharacters(in: .newlines)
            let bystander = try RawClient(port: bench.daemons[1].port)
            let neighbour = try #require(fields(try bystander.ask("REGISTER invite=\(other)"))["player"])
            #expect(try bystander.ask("PUSH g x {\"n\":1}").hasPrefix("OK "))
            let tablet = try bench.link(phone)
            let watcher = try bench.login(token, at: 1)
            #expect(try watcher.ask("WATCH since=999999999").hasPrefix("ERR cursor-ahead "))
            #expect(try tablet.client.ask("ROTATE").hasPrefix("OK "))
            #expect(try phone.ask("PAIR").hasPrefix("OK "))
            let before = try traces(of: neighbour, bench.database)

            let pushed = Shared(0)
            let workers = Workers()
            for (place, client) in [phone, tablet.client].enumerated() {
                workers.start {
                    var number = 0
                    while true {
                        number += 1
                        try client.send("PUSH g \(place)-\(number) base=0 {\"n\":\(number)}")
                        guard let line = try client.line(), line.hasPrefix("OK ") else { return }
                        pushed.change { $0 += 1 }
                    }
                }
            }
            try pushed.wait(60, for: "a history") { $0 > 2_500 }
            let dry = try bench.operate("forget", player, "--dry-run")
            #expect(dry.status == 0 && dry.output.hasPrefix("would remove "), "\(dry)")
            #expect(try bystander.ask("PING") == "OK")
            let start = ContinuousClock.now
            let result = try bench.operate("forget", player, "--yes", "--json")
            #expect(result.status == 0, "\(result)")
            let report = try #require(
                try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
            try workers.join()
            #expect(ContinuousClock.now - start < .seconds(20))
            #expect(try watcher.line()?.hasPrefix("* BYE reason=login-failed ") == true)
            #expect((report["versions"] as? Int ?? 0) >= pushed.current)
            #expect(report["devices"] as? Int == 2 && report["invites"] as? Int == 1)
            // The id alone is told to the daemons for some minutes.
            #expect(Set(try traces(of: player, bench.database).keys) == ["session_ends"])
            for token in [token, tablet.token] {
                #expect(try RawClient(port: bench.daemons[1].port).ask("LOGIN \(token)").hasPrefix("ERR login-failed "))
            }
            #expect(try traces(of: neighbour, bench.database) == before)
            #expect(try bystander.ask("GET g x").hasPrefix("END"))
            let again = try bench.operate("forget", player, "--yes")
            #expect(again.status == 1 && again.error.contains("there is no player"), "\(again)")
            try bench.database.connect().execute("UPDATE session_ends SET ended = ended - interval '11 minutes'")
            // Daemons clear the rows away, about once a minute.
            try eventually(90, "the id is gone, too") { try traces(of: player, bench.database).isEmpty }
        }
    }

    @Test("one that is killed at any moment goes on when it is run again; until then nobody gets in")
    func killed() async throws {
        try await aside {
            let bench = try TwoDaemons()
            let (phone, player, _, token) = try bench.player()
            let connection = try bench.database.connect()
            // A long history, put there directly.
            try connection.execute(
                """
                INSERT INTO game_versions (player_id, revision, device_id, saved, stamp, received, schema, size, collection, game_id, outcome, state)
                SELECT '\(player)', n, '\(player)', now(), now(), now(), 0, 2, 'g', 'x' || n, 'created', '{}' FROM generate_series(1, 60000) AS n;
                UPDATE players SET last_revision = 60000 WHERE player_id = '\(player)';
                """)
            // One version in the middle is held, so that it cannot be over before it is killed.
            let holder = try bench.database.connect()
            let held = "SELECT FROM game_versions WHERE player_id = '\(player)' AND revision = 30000 FOR UPDATE"
            try holder.execute("BEGIN; \(held)")
            let program = Process()
            program.executableURL = Programs.url("ieumd")
            program.arguments = ["forget", player, "--yes", "--database", bench.database.conninfo]
            program.standardOutput = FileHandle.nullDevice
            program.standardError = FileHandle.nullDevice
            try program.run()
            let count = "SELECT count(*) FROM game_versions WHERE player_id = '\(player)'"
            try eventually(60, "it has begun") { try connection.query(count).int8(0, 0) < 60_000 }
            kill(program.processIdentifier, SIGKILL)
            program.waitUntilExit()
            try holder.execute("ROLLBACK")
            #expect(try phone.line()?.hasPrefix("* BYE reason=login-failed ") == true)
            let left = try connection.query(count).int8(0, 0)
            #expect(left > 0 && left < 60_000, "\(left)")
            #expect(try RawClient(port: bench.daemons[1].port).ask("LOGIN \(token)").hasPrefix("ERR login-failed "))
            bench.daemons[0].kill()
            let result = try bench.operate("forget", player, "--yes")
            #expect(result.status == 0 && result.output.hasPrefix("removed "), "\(result)")
            #expect(Set(try traces(of: player, bench.database).keys) == ["session_ends"])
        }
    }

    @Test("an import that is under way leaves nothing either")
    func whileImporting() throws {
        let bench = try TwoDaemons()
        let (phone, player, _, _) = try bench.player()
        #expect(try phone.ask("IMPORT BEGIN").hasPrefix("OK import="))
        #expect(try phone.ask("IMPORT DEVICE \(UUID().uuidString) created=2025-01-01T00:00:00Z name=old") == "OK")
        #expect(try traces(of: player, bench.database)["import_devices"] == 1)
        #expect(try bench.operate("forget", player, "--yes").status == 0)
        #expect(Set(try traces(of: player, bench.database).keys) == ["session_ends"])
    }

    @Test("it asks on a terminal, and takes nothing but the player's id; a script must say --yes")
    func asks() throws {
        let bench = try TwoDaemons()
        let (phone, player, _, _) = try bench.player()
        #expect(try phone.ask("RENAME name=\"a \u{202E}b\"") == "OK")
        let unsure = try bench.operate("forget", player)
        #expect(unsure.status == 2 && unsure.error.contains("--yes"), "\(unsure)")
        func onTerminal(_ typed: String) throws -> (status: Int32, output: String, error: String) {
            let call = "\(Programs.url("ieumd").path) forget \(player) --database \"\(bench.database.conninfo)\""
            return try Programs.runInstalled(
                [
                    "bash", "-c",
                    "{ sleep 1; printf '%s\\n' '\(typed)'; sleep 1; } | script -qec '\(call.replacing("'", with: "'\\''"))' /dev/null",
                ])
        }
        let declined = try onTerminal("yes")
        #expect(declined.status == 1 && declined.output.contains("nothing was removed"), "\(declined)")
        #expect(declined.output.contains("a \\u{202E}b") && !declined.output.contains("\u{202E}"))
        #expect(try phone.ask("PING") == "OK")
        let accepted = try onTerminal(player)
        #expect(accepted.status == 0 && accepted.output.contains("and the player"), "\(accepted)")
        #expect(try phone.line()?.hasPrefix("* BYE reason=login-failed ") == true)
    }

    @Test("a game's engine then counts as signed out, and keeps every game")
    func engine() async throws {
        let bench = try TwoDaemons()
        let (_, player, _, token) = try bench.player()
        let device = try SyncDevice(token: token, port: bench.daemons[1].port)
        let engine = try #require(device.engine)
        try device.save("today", "{\"n\":1}")
        try await engine.settle()
        #expect(try bench.operate("forget", player, "--yes").status == 0)
        try await engine.reach { $0 == .signedOut }
        var events = engine.events.makeAsyncIterator()
        #expect(await events.next() == .signedOut(.unknownToken))
        #expect(try device.states() == ["today": "{\"n\":1}"])
        try device.save("today", "{\"n\":2}")
        #expect(try engine.state(ofGame: "today", in: "handle.game") == .saved)
    }
}
