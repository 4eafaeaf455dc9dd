import Foundation
import Postgres
import TestSupport
import Testing

/// Two daemons on one database, and a player with a device at each and a watcher.
struct TwoDaemons {
    let database: TestDatabase
    let daemons: [DaemonProcess]

    init(options: [String] = []) throws {
        let database = try TestDatabase.migrated()
        self.database = database
        daemons = try (0..<2).map { _ in try DaemonProcess(database: database.conninfo, options: options) }
    }

    /// A new player's first device, at the first daemon.
    func player() throws -> (client: RawClient, player: String, device: String, token: String) {
        let client = try RawClient(port: daemons[0].port)
        let answer = fields(try client.ask("REGISTER device=phone"))
        return try (client, #require(answer["player"]), #require(answer["device"]), #require(answer["token"]))
    }

    /// Another device of the player's, linked at one daemon.
    func link(_ client: RawClient, at place: Int = 1) throws -> (client: RawClient, device: String, token: String) {
        let code = try #require(fields(try client.ask("PAIR"))["code"])
        let other = try RawClient(port: daemons[place].port)
        let answer = fields(try other.ask("LINK \(code) device=tablet"))
        return try (other, #require(answer["device"]), #require(answer["token"]))
    }

    func login(_ token: String, at place: Int) throws -> RawClient {
        let client = try RawClient(port: daemons[place].port)
        #expect(try client.ask("LOGIN \(token)").hasPrefix("OK "))
        return client
    }

    /// How long it takes until each of these connections is told goodbye for that reason, and closed.
    func timeUntilGone(_ clients: [RawClient], _ reason: String, since start: ContinuousClock.Instant) throws
        -> Duration
    {
        for client in clients {
            #expect(try client.line()?.hasPrefix("* BYE reason=\(reason) ") == true)
            #expect(try client.line() == nil)
        }
        return ContinuousClock.now - start
    }

    /// Waits until both daemons have looked for sessions whose right has ended, twice at least from now on: so they have done
    /// what followed from the first look.
    func waitUntilBothLooked() throws {
        let watch = try database.connect()
        let moment = try watch.query("SELECT clock_timestamp()::text").text(0, 0)
        try eventually(60, "both daemons have looked twice since") {
            let looks = try watch.query(
                """
                SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%recent_session_ends(%'
                   AND query_start > timestamptz '\(moment)' + interval '500 milliseconds'
                """)
            return try looks.int8(0, 0) == 2
        }
    }

    func operate(_ arguments: String...) throws -> (status: Int32, output: String, error: String) {
        try Programs.run("ieumd", arguments + ["--database", database.conninfo])
    }
}

@Suite("sessions whose right has ended, on two daemons")
struct SessionEndTests {
    @Test("a revoked device's sessions end within a second on each, watchers too; others of the player stay")
    func revoked() async throws {
        try await aside {
            let bench = try TwoDaemons()
            var late = 0
            for _ in 0..<10 {
                let (phone, _, _, _) = try bench.player()
                let tablet = try bench.link(phone)
                let here = try bench.login(tablet.token, at: 0)
                #expect(try here.ask("WATCH since=0") == "OK revision=0")
                #expect(try tablet.client.ask("WATCH since=0") == "OK revision=0")
                let start = ContinuousClock.now
                #expect(try phone.ask("REVOKE \(tablet.device)") == "OK")
                if try bench.timeUntilGone([here, tablet.client], "device-revoked", since: start) > .seconds(1) {
                    late += 1
                }
                #expect(try phone.ask("PING") == "OK")
                for place in 0..<2 {
                    let again = try RawClient(port: bench.daemons[place].port)
                    #expect(try again.ask("LOGIN \(tablet.token)").hasPrefix("ERR device-revoked "))
                }
            }
            // A machine that stands still now and then may be late.
            #expect(late <= 3)
        }
    }

    @Test("also where no notification comes through: each daemon looks by itself")
    func withoutNotifications() async throws {
        try await aside {
            let bench = try TwoDaemons()
            let administrator = try bench.database.connect()
            let sessions =
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'ieumd changes' AND datname = current_database()"
            try eventually(60, "both daemons listen") { try administrator.query(sessions).rowCount == 2 }
            let rows = try administrator.query(sessions)
            let pids = try (0..<rows.rowCount).map { try rows.int4($0, 0) }
            // The sessions that notify and listen stand still, as behind a network that swallows everything.
            for pid in pids { #expect(kill(pid, SIGSTOP) == 0) }
            defer { for pid in pids { kill(pid, SIGCONT) } }
            var late = 0
            for round in 0..<10 {
                let (phone, player, _, _) = try bench.player()
                let tablet = try bench.link(phone)
                #expect(try tablet.client.ask("WATCH since=0") == "OK revision=0")
                let start = ContinuousClock.now
                if round % 2 == 0 {
                    #expect(try phone.ask("REVOKE \(tablet.device)") == "OK")
                } else {
                    _ = try administrator.query("SELECT revoke_device('\(player)', '\(tablet.device)')")
                }
                if try bench.timeUntilGone([tablet.client], "device-revoked", since: start) > .seconds(1) { late += 1 }
            }
            #expect(late <= 3)
        }
    }

    @Test("also where the transaction that ends them commits after the daemons have looked past its moment")
    func lateCommit() async throws {
        try await aside {
            let bench = try TwoDaemons()
            let (phone, player, _, _) = try bench.player()
            let tablet = try bench.link(phone)
            let sessions = [tablet.client, try bench.login(tablet.token, at: 0)]
            let slow = try bench.database.connect()
            try slow.execute("BEGIN; SELECT revoke_device('\(player)', '\(tablet.device)')")
            try bench.waitUntilBothLooked()
            for session in sessions { #expect(try session.ask("PING") == "OK") }
            try slow.execute("COMMIT")
            #expect(try bench.timeUntilGone(sessions, "device-revoked", since: .now) < .seconds(30))
        }
    }

    @Test("also of a daemon that lost the database for longer than rows are kept: it looks every device up again")
    func afterALongOutage() async throws {
        try await aside {
            let bench = try TwoDaemons()
            let (phone, player, device, _) = try bench.player()
            let tablet = try bench.link(phone)
            let administrator = try bench.database.connect()
            // As if it had happened long ago: no row tells it any more.
            try administrator.execute(
                "UPDATE devices SET revoked = now() WHERE player_id = '\(player)' AND device_id = '\(tablet.device)'")
            try bench.waitUntilBothLooked()
            #expect(try tablet.client.ask("PING") == "OK")
            try administrator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ieumd changes' AND datname = current_database()"
            )
            #expect(try tablet.client.line()?.hasPrefix("* BYE reason=device-revoked ") == true)
            // Committed before the daemons are back, and look.
            try administrator.execute("DELETE FROM devices WHERE player_id = '\(player)' AND device_id = '\(device)'")
            try administrator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ieumd changes' AND datname = current_database()"
            )
            #expect(try phone.line()?.hasPrefix("* BYE reason=login-failed ") == true)
        }
    }

    @Test("the operator's revoke ends them too, and says what there is not")
    func operatorRevokes() async throws {
        try await aside {
            let bench = try TwoDaemons()
            let (phone, player, device, token) = try bench.player()
            let other = try bench.login(token, at: 1)
            let unknown = try bench.operate("revoke", player, player)
            #expect(unknown.status == 1 && unknown.error.contains("no such device"), "\(unknown)")
            #expect(try bench.operate("revoke", "x", device).status == 2)
            #expect(try phone.ask("PING") == "OK")
            #expect(try bench.operate("revoke", player.uppercased(), device).status == 0)
            _ = try bench.timeUntilGone([phone, other], "device-revoked", since: .now)
            #expect(try bench.operate("revoke", player, device).status == 0, "again")
        }
    }

    @Test("a device that revokes itself gets its OK, then the goodbye; what was sent behind it is not done")
    func signsOut() throws {
        let bench = try TwoDaemons()
        let (phone, player, device, token) = try bench.player()
        let other = try bench.login(token, at: 1)
        try phone.send("REVOKE \(device)\nPUSH g x base=0 {}")
        #expect(try phone.line() == "OK")
        _ = try bench.timeUntilGone([phone, other], "device-revoked", since: .now)
        #expect(try RawClient(port: bench.daemons[1].port).ask("LOGIN \(token)").hasPrefix("ERR device-revoked "))
        // A daemon that has stopped has done all that it began.
        #expect(bench.daemons[0].stop() == 0)
        let stored = try bench.database.connect().query(
            "SELECT count(*) FROM game_versions WHERE player_id = '\(player)'")
        #expect(try stored.int8(0, 0) == 0)
    }

    @Test("a device of another player can be neither renamed nor revoked, and is not told of")
    func otherPlayers() throws {
        let bench = try TwoDaemons()
        let (alice, _, _, _) = try bench.player()
        let (bob, _, device, _) = try bench.player()
        #expect(try alice.ask("REVOKE \(device)").hasPrefix("ERR no-such-device "))
        #expect(try alice.ask("RENAME \(device) name=mine").hasPrefix("ERR no-such-device "))
        #expect(try bob.ask("PING") == "OK")
        try bob.send("DEVICES")
        #expect(try bob.reply()[0].contains(" name=phone "))
    }

    @Test("a session of a revoked device that is not ended yet revokes, renames, pairs and rotates no more")
    func revokedSessionDoesNothing() throws {
        let database = try TestDatabase.migrated()
        let connection = try database.connect()
        let player = UUID(), thief = UUID(), owner = UUID()
        try connection.execute(
            """
            SELECT register_player('\(player)', '\(owner)', 'owner', sha256('a'));
            INSERT INTO devices (player_id, device_id, name, token_hash) VALUES ('\(player)', '\(thief)', 'thief', sha256('b'));
            SELECT create_pairing_code('\(player)', '\(thief)', '7K3M', sha256('c'));
            """)
        func ask(_ call: String) throws -> String { try connection.query("SELECT (\(call))::text").text(0, 0) }
        #expect(try ask("revoke_device('\(player)', '\(thief)', device_by => '\(owner)')") == "done")
        #expect(try ask("SELECT count(*) FROM pairing_codes") == "0", "the thief may have made the code")
        #expect(try ask("revoke_device('\(player)', '\(owner)', device_by => '\(thief)')") == "revoked")
        #expect(try ask("rename_device('\(player)', '\(thief)', '\(owner)', 'x')") == "revoked")
        #expect(try ask("rotate_token('\(player)', '\(thief)', sha256('d'))") == "revoked")
        #expect(try ask("create_pairing_code('\(player)', '\(thief)', 'ABCD', sha256('c'))") == "(f,)")
        #expect(try ask("SELECT count(*) FROM pairing_codes") == "0")
        #expect(try ask("SELECT count(*) FROM devices WHERE revoked IS NULL AND name = 'owner'") == "1")
    }

    @Test("logins that race with a revocation leave no session of the device, at either daemon")
    func loginsRaceWithRevocation() async throws {
        try await aside {
            let bench = try TwoDaemons(options: ["--max-connections-per-player", "100000"])
            for _ in 0..<5 {
                let (phone, _, _, _) = try bench.player()
                let tablet = try bench.link(phone)
                let sessions = Shared<[RawClient]>([])
                let workers = Workers()
                let isRevoked = Shared(false)
                for place in [0, 1, 0, 1] {
                    workers.start {
                        var answer = "OK "
                        while answer.hasPrefix("OK ") {
                            let client = try RawClient(port: bench.daemons[place].port)
                            answer = try client.ask("LOGIN \(tablet.token)")
                            if answer.hasPrefix("OK ") { sessions.change { $0.append(client) } }
                        }
                        #expect(answer.hasPrefix("ERR device-revoked ") && isRevoked.current, "\(answer)")
                    }
                }
                try sessions.wait(30, for: "some logins") { $0.count > 20 }
                isRevoked.change { $0 = true }
                #expect(try phone.ask("REVOKE \(tablet.device)") == "OK")
                try workers.join()
                _ = try bench.timeUntilGone(sessions.current, "device-revoked", since: .now)
            }
        }
    }

    @Test("a device that is revoked while it pushes stores nothing a second later, and its last answers are true")
    func revokedWhilePushing() async throws {
        try await aside {
            let bench = try TwoDaemons()
            let connection = try bench.database.connect()
            let isSoon = try isInTime(.milliseconds(1_500)) { try timeOfLastPush(bench, connection) }
            #expect(isSoon)
        }
    }

    /// How long behind its revocation the last push of a device was stored that goes on until it is hung up on.
    private func timeOfLastPush(_ bench: TwoDaemons, _ connection: BlockingConnection) throws -> Duration {
        let (phone, player, _, _) = try bench.player()
        let tablet = try bench.link(phone)
        let acknowledged = Shared(0)
        let workers = Workers()
        workers.start {
            var number = 0
            while true {
                number += 1
                try tablet.client.send("PUSH g x\(number) base=0 {\"n\":\(number)}")
                guard let line = try tablet.client.line(), line.hasPrefix("OK ") else { return }
                acknowledged.change { $0 += 1 }
            }
        }
        try acknowledged.wait(30, for: "some pushes") { $0 > 50 }
        #expect(try phone.ask("REVOKE \(tablet.device)") == "OK")
        try workers.join()
        let stored = try connection.query(
            """
            SELECT count(*), (1000 * greatest(0, extract(epoch FROM max(v.received - d.revoked))))::bigint
              FROM game_versions AS v JOIN devices AS d USING (player_id, device_id)
             WHERE v.player_id = '\(player)' AND v.device_id = '\(tablet.device)'
            """)
        // What was under way when the goodbye came may be stored without an answer.
        let count = try Int(stored.int8(0, 0))
        #expect(count >= acknowledged.current && count <= acknowledged.current + 1)
        return .milliseconds(try stored.int8(0, 1))
    }
}
