import Foundation
import Postgres
import SyncServer
import TestSupport
import Testing

@Suite("a daemon's rights in the database")
struct DaemonRightsTests {
    /// Makes a login, and has `ieumd grant-daemon` let it in.
    private func member(_ name: String, of database: TestDatabase) throws -> String {
        try database.cluster.administrate("CREATE ROLE \(name) LOGIN")
        let granted = try Programs.run("ieumd", ["grant-daemon", name, "--database", database.conninfo])
        #expect(
            granted.status == 0 && granted.output == "\(name) may do what a daemon does\n" && granted.error == "",
            "\(granted)")
        return database.conninfo + " user=\(name)"
    }

    private func logins(_ database: TestDatabase) throws -> Set<String> {
        let rows = try database.connect().query(
            "SELECT DISTINCT usename::text FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'ieumd %'"
        )
        return try Set((0..<rows.rowCount).map { try rows.text($0, 0) })
    }

    /// Everything that a player does, over one daemon.
    private func play(_ daemon: DaemonProcess, invite: String? = nil) throws {
        let phone = try RawClient(port: daemon.port)
        let registered = try phone.ask("REGISTER device=phone" + (invite.map { " invite=\($0)" } ?? ""))
        #expect(registered.hasPrefix("OK player="), "\(registered)")
        let token = try #require(fields(registered)["token"])
        #expect(try phone.ask("PUSH g x {\"n\":1}").hasPrefix("OK outcome=created revision=1"))
        #expect(try phone.ask("PUSH g x base=1 {\"n\":2}").hasPrefix("OK outcome=advanced revision=2"))
        #expect(
            try phone.ask("PUSH g x base=1 saved=2026-01-01T00:00:00Z {\"n\":3}").hasPrefix(
                "OK outcome=lost revision=3"))
        let code = try #require(fields(try phone.ask("PAIR"))["code"])
        let tablet = try RawClient(port: daemon.port)
        let linked = try tablet.ask("LINK \(code) device=tablet")
        #expect(linked.hasPrefix("OK player="), "\(linked)")
        let other = try #require(fields(linked)["device"])
        for (command, lines) in [
            ("PULL since=0", 2), ("PULL since=1", 2), ("GET g x", 2), ("GET g x revision=1", 2), ("HISTORY g x", 4),
            ("VERSIONS since=0", 4), ("VERSIONS before=9", 4), ("VERSIONS conflicts=true", 2),
            ("VERSIONS revision=2", 2),
            ("DEVICES", 3),
        ] {
            try tablet.send(command)
            let reply = try tablet.reply()
            #expect(reply.count == lines && reply.last?.hasPrefix("END") == true, "\(command): \(reply)")
        }
        #expect(try tablet.ask("WATCH since=3").hasPrefix("OK"))
        #expect(try phone.ask("PUSH g y {\"n\":4}").hasPrefix("OK outcome=created revision=4"))
        #expect(try tablet.line() == "* CHANGED revision=4")
        #expect(try phone.ask("RENAME \(other) name=plate").hasPrefix("OK"))
        let rotated = try #require(fields(try phone.ask("ROTATE"))["token"])
        #expect(try phone.ask("REVOKE \(other)").hasPrefix("OK"))
        #expect(try tablet.line()?.hasPrefix("* BYE reason=device-revoked") == true)
        let again = try RawClient(port: daemon.port)
        #expect(try again.ask("LOGIN \(rotated)").hasPrefix("OK player="))
        #expect(try phone.line()?.hasPrefix("* BYE reason=token-rotated") == true)
        let old = try RawClient(port: daemon.port)
        #expect(try old.ask("LOGIN \(token)").hasPrefix("ERR login-failed"))
        let wrong = try RawClient(port: daemon.port)
        #expect(try wrong.ask("LINK 2222-2222").hasPrefix("ERR code-invalid"))
    }

    @Test("are enough with a login that may do nothing else, and that can do nothing else")
    func memberOnly() throws {
        let database = try TestDatabase.migrated(on: TestCluster.start(durable: false))
        let login = try member("ieumd", of: database)
        let daemon = try DaemonProcess(database: login, options: ["--registration", "invite"])
        let codes = try Programs.run("ieumd", ["invite", "--database", database.conninfo])
        try play(daemon, invite: codes.output.trimmingCharacters(in: .whitespacesAndNewlines))
        #expect(try logins(database) == ["ieumd"])
        for event in ["daemon-is-owner", "database-open-to-all-logins", "request-failed", "level=error"] {
            #expect(!daemon.log.contains(event), "\(daemon.log)")
        }

        let connection = try BlockingConnection(login)
        let id = UUID().uuidString
        for statement in [
            "SELECT token_hash FROM devices", "TABLE devices", "TABLE players", "TABLE pairing_codes", "TABLE invites",
            "TABLE token_rotations", "TABLE session_ends", "TABLE imports", "TABLE import_versions", "TABLE history",
            "SELECT code_hash FROM pairing_codes", "SELECT next_token_hash FROM token_rotations",
            "UPDATE game_versions SET state = NULL", "DELETE FROM game_versions", "DELETE FROM games",
            "UPDATE games SET head_revision = 1", "UPDATE devices SET revoked = NULL",
            "UPDATE players SET last_revision = 0",
            "UPDATE server SET epoch = gen_random_uuid()", "DELETE FROM schema_migrations",
            "UPDATE schema_migrations SET name = ''",
            "INSERT INTO server DEFAULT VALUES", "INSERT INTO players (player_id) VALUES (gen_random_uuid())",
            "TRUNCATE games",
            "DO $$ BEGIN LOCK TABLE games; END $$", "SELECT FROM games FOR UPDATE", "DROP TABLE games",
            "CREATE TABLE own (a int)",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE SCHEMA own", "CREATE ROLE other",
            "ALTER TABLE games DISABLE ROW LEVEL SECURITY", "ALTER TABLE games ADD COLUMN a int",
            "CREATE INDEX ON games (game_id)",
            "CREATE POLICY all_rows ON games USING (true)", "DROP POLICY games_claimed ON games",
            "ALTER FUNCTION find_device(uuid, uuid, bytea) SECURITY INVOKER", "GRANT ieum_daemon TO pg_monitor",
            "SET row_security = off; SELECT FROM games", "COPY (SELECT 1) TO PROGRAM 'true'",
            "COPY games TO '/tmp/games'",
            "SELECT pg_read_file('/etc/hostname')", "SET ROLE postgres", "SET SESSION AUTHORIZATION postgres",
            "ALTER ROLE ieumd SUPERUSER", "ALTER ROLE ieum_daemon BYPASSRLS", "ALTER SYSTEM SET fsync = off",
            "SELECT begin_forgetting('\(id)')", "SELECT forget_versions('\(id)', 1)",
            "SELECT finish_forgetting('\(id)')",
            "SELECT prune_versions(now(), 0, '\(id)', 0, 10, true)",
            "SELECT create_pairing_code('\(id)', 'ABCD', sha256('x'))",
            "SELECT end_sessions('\(id)')", "SELECT grant_rights_to_daemon()", "SELECT grant_views_to_reader()",
            "SELECT push('\(id)', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')",
        ] {
            let error = #expect(throws: DatabaseError.self, "\(statement)") { try connection.execute(statement) }
            #expect(error?.sqlState == .insufficientPrivilege, "\(statement): \(String(describing: error))")
        }
        // What it may read it sees of nobody, as long as it names nobody.
        for table in ["game_versions", "games", "players", "devices"] {
            #expect(try connection.query("SELECT count(player_id) FROM \(table)").int8(0, 0) == 0)
            #expect(try database.connect().query("SELECT count(*) FROM \(table)").int8(0, 0) > 0)
        }
        // The operator's commands say whose login they need.
        for command in [
            ["players"], ["invite"], ["forget", id, "--yes"], ["prune", "--older-than", "1d"], ["restore-epoch"],
        ] {
            let refused = try Programs.run("ieumd", command + ["--database", login])
            #expect(refused.status == 4 && refused.error.contains("permission denied"), "\(command): \(refused)")
            #expect(refused.error.contains("the tables' owner"), "\(command): \(refused)")
        }
    }

    @Test("are laid down by a login that could do more")
    func ownersLogin() throws {
        let database = try TestDatabase.migrated(on: TestCluster.start(durable: false))
        let daemon = try DaemonProcess(database: database.conninfo)
        try play(daemon)
        #expect(!daemon.log.contains("daemon-is-owner"))
        // What the role may not do, its sessions may not.
        try database.connect().execute(
            "REVOKE EXECUTE ON FUNCTION register_player(uuid, uuid, text, bytea) FROM ieum_daemon")
        let refused = try RawClient(port: daemon.port).ask("REGISTER")
        #expect(refused.hasPrefix("ERR internal"))
        #expect(!refused.contains("permission") && !refused.contains("register_player"), "a client hears: \(refused)")
        #expect(daemon.log.contains("permission denied for function register_player"))
        // Also behind a reconnect.
        let owner = try database.connect()
        let sessions =
            "FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'ieumd %' AND backend_start <"
        let moment = "timestamptz '\(try owner.query("SELECT clock_timestamp()::text").text(0, 0))'"
        try owner.execute("SELECT pg_terminate_backend(pid) \(sessions) \(moment)")
        try eventually(60, "its sessions have ended") { try owner.query("SELECT \(sessions) \(moment)").rowCount == 0 }
        try eventually(60, "the daemon is back") {
            try RawClient(port: daemon.port).ask("REGISTER").hasPrefix("ERR internal")
        }
        #expect(try Programs.run("ieumd", ["grant-daemon", "--database", database.conninfo]).status == 0)
        #expect(try RawClient(port: daemon.port).ask("REGISTER").hasPrefix("OK "))
    }

    @Test(
        "are those of the owner where the role could not be made, and the log says what to run; a stranger is refused")
    func withoutRole() throws {
        let cluster = try TestCluster.start(durable: false)
        try cluster.administrate("CREATE ROLE plain LOGIN; CREATE ROLE stranger LOGIN")
        let database = try TestDatabase.make(on: cluster)
        try cluster.administrate("ALTER DATABASE \(database.name) OWNER TO plain")
        // A schema named like the user, which is found by "$user" as long as nobody takes another role on.
        try database.connect().execute("CREATE SCHEMA plain AUTHORIZATION plain")
        let owner = database.conninfo + " user=plain"
        let migrated = try Programs.run("ieumd", ["migrate", "up", "--verbose", "--database", owner])
        #expect(
            migrated.status == 0 && migrated.error.contains("the role ieum_daemon was not made"), "\(migrated.error)")
        #expect(try Programs.run("ieumd", ["migrate", "status", "--check", "--database", owner]).status == 0)
        let asOwner = try DaemonProcess(database: owner)
        try play(asOwner)
        #expect(
            asOwner.log.contains(#"event=daemon-is-owner user=plain run="ieumd grant-daemon plain""#), "\(asOwner.log)")

        let refused = try Programs.run("ieumd", ["grant-daemon", "plain", "--database", owner])
        #expect(refused.status == 4 && refused.error.contains("CREATEROLE"), "\(refused)")
        let path = " options='-c search_path=plain'"
        let granted = try Programs.run("ieumd", ["grant-daemon", "plain", "--database", database.conninfo + path])
        #expect(granted.status == 0 && granted.error.contains("lays that down"), "\(granted)")
        let assumed = try DaemonProcess(database: owner)
        try play(assumed)
        #expect(!assumed.log.contains("daemon-is-owner"))
        try database.connect().execute(
            "REVOKE EXECUTE ON FUNCTION plain.register_player(uuid, uuid, text, bytea) FROM ieum_daemon")
        #expect(try RawClient(port: assumed.port).ask("REGISTER").hasPrefix("ERR internal"))
        #expect(try RawClient(port: asOwner.port).ask("REGISTER").hasPrefix("OK "), "it goes on until it is restarted")

        let stranger = database.conninfo + " user=stranger" + path
        let strange = try Programs.run(
            "ieumd", ["serve", "--listen", "127.0.0.1:0", "--metrics", "off", "--database", stranger])
        #expect(strange.status != 0 && strange.output == "", "\(strange)")
        // With the rights of a reader of all tables, it would find them empty.
        try database.connect().execute(
            "GRANT USAGE ON SCHEMA plain TO stranger; GRANT ALL ON ALL TABLES IN SCHEMA plain TO stranger")
        let blind = try Programs.run(
            "ieumd", ["serve", "--listen", "127.0.0.1:0", "--metrics", "off", "--database", stranger])
        #expect(blind.status == 4 && blind.error.contains("ieumd grant-daemon"), "\(blind)")
        let missing = try Programs.run("ieumd", ["grant-daemon", "nobody", "--database", database.conninfo + path])
        #expect(missing.status == 2 && missing.error.contains("CREATE ROLE"), "\(missing)")
    }

    @Test("are the role's own login on a private PostgreSQL")
    func privateDatabase() throws {
        let daemon = try DaemonProcess()
        try play(daemon)
        let owner = try BlockingConnection(try #require(PrivateDatabase.running(in: daemon.directory.path)))
        let rows = try owner.query(
            "SELECT DISTINCT usename::text FROM pg_stat_activity WHERE application_name ~ '^ieumd (reader|lane|changes)'"
        )
        #expect(rows.rowCount == 1)
        #expect(try rows.text(0, 0) == "ieum_daemon")
        #expect(try owner.query("SELECT rolsuper FROM pg_roles WHERE rolname = 'ieum_daemon'").bool(0, 0) == false)
        #expect(try Programs.run("ieumd", ["players", "--data-directory", daemon.directory.path]).status == 0)
    }

    @Test("come with the upgrade from 0016, beside data and an older daemon's statements")
    func upgrade() throws {
        let database = try TestDatabase.make(on: TestCluster.start(durable: false))
        #expect(
            try Programs.run("ieumd", ["migrate", "up", "--to", "16", "--database", database.conninfo]).status == 0)
        let owner = try database.connect()
        let (player, device) = (UUID(), UUID())
        try owner.execute(
            """
            SELECT register_player('\(player)', '\(device)', 'phone', sha256('secret'));
            SELECT push('\(player)', ARRAY['\(player)'::uuid], ARRAY['\(device)'::uuid], ARRAY['g'], ARRAY['x'], ARRAY[now()], ARRAY[NULL::bigint], ARRAY[1], ARRAY['{"n":1}'::json]);
            """)
        // A connection of an older daemon has its statements prepared.
        let older = try database.connect()
        try older.execute(
            """
            PREPARE login AS SELECT p.last_revision, d.revoked IS NOT NULL, d.token_hash, r.next_token_hash FROM players AS p
                JOIN devices AS d ON d.player_id = p.player_id
                LEFT JOIN token_rotations AS r ON r.player_id = d.player_id AND r.device_id = d.device_id WHERE p.player_id = $1::uuid;
            EXECUTE login('\(player)');
            """)
        let rehearsed = try Programs.run(
            "ieumd", ["migrate", "up", "--dry-run", "--verify", "--database", database.conninfo])
        #expect(rehearsed.status == 0, "\(rehearsed)")
        let migrated = try Programs.run("ieumd", ["migrate", "up", "--database", database.conninfo])
        #expect(migrated.status == 0, "\(migrated)")
        #expect(
            try Programs.run("ieumd", ["migrate", "status", "--check", "--database", database.conninfo]).status == 0)
        #expect(try older.execute("EXECUTE login('\(player)')").last?.rowCount == 1)
        #expect(try older.execute("SELECT e.player_id FROM session_ends AS e").last?.rowCount == 0)
        let daemon = try DaemonProcess(database: member("ieumd", of: database))
        try play(daemon)
        try owner.execute(
            "UPDATE devices SET token_hash = sha256(decode(repeat('07', 32), 'hex')) WHERE device_id = '\(device)'")
        let found = try owner.execute(
            "SELECT is_current FROM find_device('\(player)', '\(device)', sha256(decode(repeat('07', 32), 'hex')))"
        ).last
        #expect(found?.rowCount == 1)
        #expect(
            try owner.execute("SELECT FROM find_device('\(player)', '\(device)', sha256('other'))").last?.rowCount == 0)
    }

    @Test("are closed to all others again when a dump was restored without its privileges")
    func restored() throws {
        let folder = try TestFolder("dump")
        let origin = try TestDatabase.migrated()
        let (dump, script) = (folder.path + "/ieum.dump", folder.path + "/ieum.sql")
        try Backup.take(of: origin, to: dump)
        // A server that has no such role: a policy that named it could not be restored.
        let target = try TestDatabase.make(on: TestCluster.start(durable: false))
        let written = try Programs.runInstalled(["pg_restore", "--no-owner", "--no-privileges", "--file", script, dump])
        #expect(written.status == 0, "\(written.error)")
        let loaded = try Programs.runInstalled(
            ["psql", "-XAtq", "--single-transaction", "-v", "ON_ERROR_STOP=on", "-d", target.conninfo, "-f", script])
        #expect(loaded.status == 0, "\(loaded.error)")
        let open =
            "SELECT has_function_privilege('public', f, 'EXECUTE') FROM unnest(daemon_functions()) AS f GROUP BY 1"
        #expect(try target.connect().query(open).bool(0, 0))
        let warned = try DaemonProcess(database: target.conninfo)
        #expect(warned.log.contains("event=database-open-to-all-logins") && warned.log.contains("daemon-is-owner"))
        warned.kill()
        #expect(try Programs.run("ieumd", ["restore-epoch", "--database", target.conninfo]).status == 0)
        #expect(try target.connect().query(open).bool(0, 0) == false)
        #expect(try target.connect().query(open).rowCount == 1)
        #expect(try Programs.run("ieumd", ["grant-daemon", "--database", target.conninfo]).status == 0)
        let daemon = try DaemonProcess(database: target.conninfo)
        try play(daemon)
        #expect(!daemon.log.contains("level=warning"), "\(daemon.log)")
    }
}
