import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import Migrator

@Suite("Changing stored states by the files of SQL/recipes")
struct StateMigrationTests {
    private static let recipes = [
        "0001_state_migrations.sql", "0002_person_full_name.sql", "0003_person_main_phone_number.sql",
    ]
    private static let head = """
        SELECT v.schema, v.outcome, v.base, v.device_id = '\(People.migrator)', v.state
        FROM games AS g JOIN game_versions AS v ON v.player_id = g.player_id AND v.revision = g.head_revision
        """

    @Test("the document shows the examples as they are in the files")
    func document() throws {
        let path = URL(filePath: People.recipes).appending(path: "../../Documentation/migrations.md")
        let document = try String(contentsOf: path.standardizedFileURL, encoding: .utf8)
        for name in Self.recipes.dropFirst() {
            let file = try String(contentsOf: URL(filePath: People.recipes).appending(path: name), encoding: .utf8)
            let start = try #require(file.range(of: "CREATE FUNCTION"))
            #expect(document.contains("```sql\n\(file[start.lowerBound...])```\n"), "\(name)")
        }
    }

    @Test("firstName and lastName become fullName; every other key and byte stays as it was")
    func fullName() throws {
        let people = try People()
        try people.signUp(1)
        let rest = #""big":12345678901234567890.10,"e":1.50e2,"in":{"b" : 1,  "a":[1, 2]},"n":null,"u":"\u00e9\/""#
        try people.push(
            PersonPush(
                game: "a", state: #"{ "id" : "1", "firstName" : "지은", "lastName":"\"Kim\"\n", \#(rest) }"#))
        try people.push(PersonPush(game: "b", state: #"{"lastName":"Lee","firstName":"","fullName":"old","z":0}"#))
        try people.push(PersonPush(game: "c", state: #"{"firstName":"","lastName":""}"#))
        #expect(try people.runRecipes() == Self.recipes)
        #expect(
            try people.rows("\(Self.head) ORDER BY g.game_id") == [
                #"1|advanced|1|t|{"id":"1",\#(rest),"fullName":"지은 \"Kim\"\n"}"#,
                #"1|advanced|2|t|{"z":0,"fullName":"Lee"}"#,
                #"1|advanced|3|t|{"fullName":""}"#,
            ])
        // The old versions are all there, the new ones are numbered behind them, each a microsecond after its base.
        #expect(
            try people.rows(
                """
                SELECT v.revision, v.schema, v.stamp - b.stamp FROM game_versions AS v
                LEFT JOIN game_versions AS b ON b.revision = v.base ORDER BY v.revision
                """) == [
                    "1|0|", "2|0|", "3|0|", "4|1|00:00:00.000001", "5|1|00:00:00.000001", "6|1|00:00:00.000001",
                ])
        #expect(try people.rows("SELECT last_revision FROM players") == ["6"])
        #expect(try people.runRecipes() == [])
    }

    @Test("the first of phoneNumberList becomes mainPhoneNumber, or an empty text; the list is kept")
    func mainPhoneNumber() throws {
        let people = try People()
        try people.signUp(1)
        let cases = [
            (#"{"phoneNumberList":["010-1", "010-2"],"x":1}"#, #"["010-1", "010-2"],"x":1,"mainPhoneNumber":"010-1"}"#),
            (#"{"phoneNumberList":["\u0031\"2"]}"#, #"["\u0031\"2"],"mainPhoneNumber":"\u0031\"2"}"#),
            (#"{"phoneNumberList":[ ]}"#, #"[ ],"mainPhoneNumber":""}"#),
        ]
        for (number, value) in cases.enumerated() {
            try people.push(PersonPush(collection: "phonebook.person", game: "\(number)", state: value.0))
        }
        try people.push(PersonPush(collection: "phonebook.person", game: "9", state: "{}"))
        try people.runRecipes()
        #expect(
            try people.rows("SELECT state FROM current_games WHERE schema = 1 ORDER BY game_id")
                == cases.map { #"{"phoneNumberList":"# + $0.1 } + [#"{"mainPhoneNumber":""}"#])
    }

    @Test("what is not as expected is left alone and counted; so are tombstones, newer states and other collections")
    func leftAlone() throws {
        let people = try People()
        try people.signUp(1)
        let unfit = [#"{"firstName":1,"lastName":"x"}"#, #"{"firstName":"x"}"#, "[1]", #""text""#, "{}", "null"]
        for (number, state) in unfit.enumerated() { try people.push(PersonPush(game: "\(number)", state: state)) }
        let fit = #"{"firstName":"a","lastName":"b"}"#
        try people.push(PersonPush(game: "newer", schema: 1, state: fit))
        try people.push(PersonPush(collection: "contacts.persons", state: fit))
        let revision = try people.push(PersonPush(game: "deleted", state: fit))
        #expect(revision == "created|9")
        try people.push(PersonPush(game: "deleted", saved: "2026-01-02", base: 9))
        let phones = [#"{"phoneNumberList":{}}"#, #"{"phoneNumberList":[1]}"#, #"{"phoneNumberList":null}"#, "3"]
        for (number, state) in phones.enumerated() {
            try people.push(PersonPush(collection: "phonebook.person", game: "\(number)", state: state))
        }
        let before = try people.rows("SELECT * FROM game_versions ORDER BY revision")
        try people.runRecipes()
        #expect(try people.rows("SELECT * FROM game_versions ORDER BY revision") == before)
        #expect(
            try people.rows(
                "SELECT looked_at, migrated, left_alone, finished IS NOT NULL FROM state_migrations ORDER BY collection"
            )
                == ["8|0|6|t", "4|0|4|t"])
        #expect(try people.rows("SELECT count(*) FROM devices WHERE device_id = '\(People.migrator)'") == ["0"])
    }

    @Test("nobody can use the migration's device: it is revoked, whenever others can see it")
    func deviceIsRevoked() throws {
        let people = try People()
        try people.signUp(1)
        let state = #"{"firstName":"a","lastName":"b"}"#
        try people.push(PersonPush(state: state))
        try people.runRecipes()
        try people.push(PersonPush(saved: "(clock_timestamp())", base: 2, state: state))
        try people.execute("CALL migrate_states('contacts.person', 1, 'person_full_name(json)')")
        #expect(
            try people.rows(
                "SELECT name, revoked IS NOT NULL FROM devices WHERE device_id = '\(People.migrator)'")
                == ["state migration|t"])
        #expect(try people.rows("SELECT last_revision FROM players") == ["4"])
    }

    @Test("a save made before the migration and pushed after it wins, and the next run migrates it")
    func offlineSave() throws {
        let people = try People()
        try people.signUp(1)
        func state(_ name: String) -> String { #"{"firstName":"\#(name)","lastName":"b"}"# }
        try people.push(PersonPush(game: "later", saved: "2026-01-01 12:00Z", state: state("one")))
        try people.push(PersonPush(game: "at once", saved: "2026-01-01 12:00Z", state: state("one")))
        try people.runRecipes()
        // Both devices had seen the old head; one saved in the very microsecond that the migration took for itself.
        #expect(
            try people.push(PersonPush(game: "later", saved: "2026-01-01 12:01Z", base: 1, state: state("two")))
                == "won|5")
        #expect(
            try people.push(
                PersonPush(game: "at once", saved: "2026-01-01 12:00:00.000001Z", base: 2, state: state("two")))
                == "won|6")
        #expect(try people.rows("SELECT loser_device, loser_state FROM conflicts").count == 2)
        try people.execute("CALL migrate_states('contacts.person', 1, 'person_full_name(json)')")
        #expect(
            try people.rows("SELECT revision, schema, state FROM current_games ORDER BY game_id")
                == [#"7|1|{"fullName":"two b"}"#, #"8|1|{"fullName":"two b"}"#])
    }

    @Test("a push that comes between reading and locking is what is migrated; it is never overwritten")
    func pushBefore() throws {
        let people = try People()
        try people.install()
        try people.execute(
            "CREATE FUNCTION mark(json) RETURNS json LANGUAGE sql AS $$ SELECT state_with($1, 'm', '1') $$")
        try people.signUp(1)
        try people.push(PersonPush(state: #"{"n":1}"#))
        try people.execute("BEGIN")
        #expect(
            try people.push(PersonPush(saved: "2026-01-02", base: 1, state: #"{"n":2}"#)) == "advanced|2")
        let run = people.inBackground("CALL migrate_states('contacts.person', 1, 'mark(json)')")
        _ = try people.waitForLock("transactionid")
        try people.execute("COMMIT")
        _ = try run.value()
        #expect(
            try people.rows("SELECT revision, base, outcome, state FROM history ORDER BY revision")
                == [#"1|0|created|{"n":1}"#, #"2|1|advanced|{"n":2}"#, #"3|2|advanced|{"n":2,"m":1}"#])
    }

    @Test("a push that waits for the migration wins against it, visibly")
    func pushAfter() throws {
        let people = try People()
        try people.install()
        try people.execute(
            """
            CREATE FUNCTION gated(json) RETURNS json LANGUAGE sql
            AS $$ SELECT pg_advisory_xact_lock_shared(4242, 1); SELECT state_with($1, 'm', '1') $$
            """)
        try people.signUp(1)
        try people.push(PersonPush(state: #"{"n":1}"#))
        try people.execute("SELECT pg_advisory_lock(4242, 1)")
        let run = people.inBackground("CALL migrate_states('contacts.person', 1, 'gated(json)')")
        _ = try people.waitForLock("advisory")
        let push = people.inBackground(
            PersonPush(saved: "(clock_timestamp())", base: 1, state: #"{"n":2}"#).sql)
        _ = try people.waitForLock("transactionid")
        try people.execute("SELECT pg_advisory_unlock(4242, 1)")
        _ = try run.value()
        #expect(try push.value() == ["won|3"])
        #expect(
            try people.rows("SELECT winner_state, loser_state, loser_device FROM conflicts")
                == [#"{"n":2}|{"n":1,"m":1}|state migration"#])
    }

    @Test("killed in a batch it goes on at that batch; no game is migrated twice")
    func interrupted() throws {
        let people = try People()
        try people.install()
        try people.execute(
            """
            CREATE FUNCTION gated(state json) RETURNS json LANGUAGE plpgsql AS $$
            BEGIN
                IF state ->> 'n' = '25' THEN PERFORM pg_advisory_xact_lock_shared(4242, 1); END IF;
                RETURN state_with(state, 'm', '1');
            END $$
            """)
        for player in 1...5 {
            try people.signUp(player)
            for game in 0..<10 {
                let number = (player - 1) * 10 + game
                try people.push(PersonPush(player: player, game: "\(game)", state: "{\"n\":\(number)}"))
            }
        }
        let call = "CALL migrate_states('contacts.person', 1, 'gated(json)', batch => 7)"
        try people.execute("SELECT pg_advisory_lock(4242, 1)")
        let run = people.inBackground(call)
        let pid = try people.waitForLock("advisory")
        let progress = "SELECT looked_at, migrated, finished IS NOT NULL FROM state_migrations"
        #expect(try people.rows(progress) == ["21|21|f"])
        try people.execute("SELECT pg_terminate_backend(\(pid))")
        #expect(throws: DatabaseError.self) { try run.value() }
        try people.execute("SELECT pg_advisory_unlock(4242, 1)")
        try people.execute(call)
        #expect(try people.rows(progress) == ["50|50|t"])
        let versions =
            "SELECT outcome, count(*), max(revision), count(DISTINCT state->>'n') FROM game_versions GROUP BY 1"
        #expect(try people.rows(versions).sorted() == ["advanced|50|20|50", "created|50|10|50"])
        try people.execute(call)
        #expect(try people.rows(progress) == ["50|0|t"])
        #expect(try people.rows(versions).count == 2)
    }

    @Test("two runs at once share the work")
    func twoRuns() throws {
        let people = try People()
        try people.runRecipes()
        try people.seed(players: 100, games: 10)
        let call = "CALL migrate_states('contacts.person', 1, 'person_full_name(json)', batch => 9)"
        let runs = [people.inBackground(call), people.inBackground(call)]
        for run in runs { _ = try run.value() }
        #expect(
            try people.rows("SELECT outcome, schema, count(*) FROM game_versions GROUP BY 1, 2").sorted()
                == ["advanced|1|1000", "created|0|1000"])
    }

    @Test("beside devices that push all the while, no push loses and the last state of each game is the head's")
    func besidePushes() throws {
        let people = try People()
        try people.runRecipes()
        let (players, games) = (40, 10)
        try people.seed(players: players, games: games)
        let isOver = Mutex(false)
        let database = people.database
        let pushers = (0..<2).map { half in
            Background { () -> [String: Int] in
                let connection = try database.connect()
                var bases: [String: String] = [:]
                var counts: [String: Int] = [:]
                var round = 0
                repeat {
                    round += 1
                    for player in 1...players where player % 2 == half {
                        let game = "g\(1 + (round + player) % games)"
                        let key = "\(player) \(game)"
                        let known =
                            try bases[key]
                            ?? connection.rows(
                                """
                                SELECT min(revision) FROM game_versions
                                WHERE player_id = '\(People.player(player))' AND game_id = '\(game)'
                                """
                            ).first
                        let push = PersonPush(
                            player: player, game: game, saved: "(clock_timestamp())",
                            base: known.flatMap { Int($0) } ?? 0,
                            state: #"{"firstName":"\#(round)","lastName":"x"}"#)
                        let answer = try connection.rows(push.sql).first ?? ""
                        guard answer.hasPrefix("advanced|") || answer.hasPrefix("won|") else {
                            throw ProbeError(description: "\(key) was answered \(answer)")
                        }
                        bases[key] = answer.split(separator: "|").last.map(String.init)
                        counts[key] = round
                    }
                } while !isOver.withLock { $0 }
                return counts
            }
        }
        let call = "CALL migrate_states('contacts.person', 1, 'person_full_name(json)', batch => 5)"
        for _ in 0..<3 { try people.execute(call) }
        isOver.withLock { $0 = true }
        var counts: [String: Int] = [:]
        for pusher in pushers { counts.merge(try pusher.value()) { $1 } }
        try people.execute(call)
        let heads = try people.rows(
            "SELECT right(player_id::text, 4)::int || ' ' || game_id, schema, state->>'fullName' FROM current_games")
        #expect(heads.count == players * games)
        for head in heads {
            let parts = head.split(separator: "|").map(String.init)
            #expect(parts[1] == "1")
            #expect(parts[2] == (counts[parts[0]].map { "\($0) x" } ?? "first last"), "\(head)")
        }
        #expect(
            try people.rows(
                """
                SELECT count(*) FROM players AS p
                WHERE last_revision <> (SELECT count(*) FROM game_versions AS v WHERE v.player_id = p.player_id)
                """) == ["0"])
    }

    @Test("50,000 games of 5,000 players, in batches large and small")
    func largeTable() throws {
        let people = try People()
        try people.runRecipes()
        try people.seed(players: 5000, games: 10, padding: 1000)
        let clock = ContinuousClock()
        var taken = try clock.measure {
            try people.execute("CALL migrate_states('contacts.person', 1, 'person_full_name(json)')")
        }
        print("50,000 states of 1.1 KB were migrated in \(taken)")
        taken = try clock.measure {
            try people.execute("CALL migrate_states('contacts.person', 1, 'person_full_name(json)')")
        }
        print("a second run found nothing in \(taken)")
        #expect(
            try people.rows("SELECT schema, state->>'fullName', count(*) FROM current_games GROUP BY 1, 2")
                == ["1|first last|50000"])
        #expect(try people.rows("SELECT DISTINCT last_revision FROM players") == ["20"])
        // 500 players in a batch are told of in five notifications; one would be too long.
        try people.execute("CALL migrate_states('contacts.person', 2, 'json_strip_nulls(json)', batch => 5000)")
        #expect(try people.rows("SELECT DISTINCT last_revision FROM players") == ["30"])
    }

    @Test("under repeatable read it refuses to begin, since it could not see what was pushed meanwhile")
    func isolation() throws {
        let people = try People()
        try people.runRecipes()
        try people.execute("SET default_transaction_isolation = 'repeatable read'")
        #expect(throws: DatabaseError.self) {
            try people.execute("CALL migrate_states('contacts.person', 1, 'person_full_name(json)')")
        }
    }
}

extension People {
    /// Players with games named g1, g2 and so on, all of schema 0.
    func seed(players: Int, games: Int, padding: Int = 0) throws {
        let state = #"{"firstName":"first","lastName":"last","pad":"\#(String(repeating: "x", count: padding))"}"#
        try execute(
            """
            INSERT INTO players (player_id)
            SELECT ('a0000000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid FROM generate_series(1, \(players)) AS i;
            INSERT INTO devices (player_id, device_id, name, token_hash)
            SELECT player_id, ('d' || substr(player_id::text, 2))::uuid, 'phone', sha256('secret') FROM players;
            SELECT count(r.*) FROM generate_series(1, \(games)) AS g
             CROSS JOIN (SELECT array_agg(player_id ORDER BY player_id) AS players,
                                array_agg(device_id ORDER BY player_id) AS devices FROM devices) AS d
             CROSS JOIN LATERAL push(d.players[1], d.players, d.devices,
                 array_fill('contacts.person'::text, ARRAY[\(players)]), array_fill('g' || g, ARRAY[\(players)]),
                 array_fill('2026-01-01 12:00Z'::timestamptz, ARRAY[\(players)]), array_fill(0::bigint, ARRAY[\(players)]),
                 array_fill(0, ARRAY[\(players)]), array_fill('\(state)'::json, ARRAY[\(players)])) AS r
            """)
    }
}
