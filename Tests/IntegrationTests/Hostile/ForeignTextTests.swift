import Foundation
import Postgres
import TestSupport
import Testing

/// What strangers write is text wherever it goes: into SQL, to other clients, onto a terminal.
@Suite("text of strangers")
struct ForeignTextTests {
    private static let sql = [
        "'; DROP TABLE players; --", "' OR '1'='1", "$$; DELETE FROM game_versions; $$", "\\'; TRUNCATE devices; --",
        "1); DROP SCHEMA public CASCADE; --", "{1,2}", "NULL", "\\x00", "%s%n", "%_",
    ]

    @Test("SQL in every field of every command is refused or kept as it is, and changes nothing else")
    func everyField() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let (witness, _) = try newPlayer(daemon)
        #expect(try witness.ask("PUSH g x base=0 {\"kept\":1}").hasPrefix("OK outcome=created"))
        let connection = try BlockingConnection(database.conninfo, applicationName: "test")
        let schema = try Self.schema(connection)
        for text in Self.sql {
            let (client, token) = try newPlayer(daemon)
            let word = text.replacing(" ", with: "")
            let quoted = "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
            for line in Self.lines(word: word, quoted: quoted, token: token) {
                let answer = try client.ask(line)
                let isCoded = answer.hasPrefix("ERR ") && !answer.hasPrefix("ERR internal-error")
                #expect(isCoded || answer.hasPrefix("OK") || answer.hasPrefix("END"), "\(line): \(answer)")
                #expect(!answer.contains("syntax error"), "\(line): \(answer)")
            }
            // What may hold any text came through as it was.
            #expect(try client.ask("RENAME name=\(quoted)").hasPrefix("OK"))
            try client.send("DEVICES")
            // In quotes where it must be.
            let lines = try client.reply()
            #expect(lines.contains { $0.contains("name=\(quoted) ") || $0.contains("name=\(text) ") }, "\(lines)")
            // Before signing in, in the place of a token, of a code, of a name, of an invite.
            let stranger = try RawClient(port: daemon.port)
            for line in ["LOGIN \(word)", "LINK \(word)", "HELLO client=\(quoted)", "REGISTER invite=\(word)"] {
                let answer = try stranger.ask(line)
                #expect(answer.hasPrefix("ERR ") || answer.hasPrefix("OK"), "\(line): \(answer)")
            }
            let named = try RawClient(port: daemon.port)
            #expect(try named.ask("REGISTER device=\(quoted)").hasPrefix("OK player="), "\(text)")
        }
        #expect(try Self.schema(connection) == schema)
        #expect(try witness.ask("GET g x").hasPrefix("END"))
        try witness.send("GET g x")
        #expect(try witness.reply().first?.hasSuffix(" {\"kept\":1}") == true)
        #expect(try witness.ask("PULL since=0") == "END cursor=1 more=false")
        #expect(!daemon.log.contains("syntax error"))
    }

    /// Each field of each command once.
    private static func lines(word: String, quoted: String, token: String) -> [String] {
        [
            "\(word)", "PUSH \(word) x base=0 {}", "PUSH g \(word) base=0 {}", "PUSH g y base=\(word) {}",
            "PUSH g y saved=\(word) {}", "PUSH g y schema=\(word) {}", "PUSH g y \(word)=1 {}",
            "PUSH g y base=0 \(quoted)", "PUSH g z base=0 {\(quoted):\(quoted)}", "PUSH g z {\(word)}",
            "DELETE \(word) x", "DELETE g \(word)", "DELETE g y base=\(word)", "GET \(word) x", "GET g \(word)",
            "GET g y revision=\(word)", "PULL since=\(word)", "PULL since=0 limit=\(word)", "HISTORY \(word) x",
            "HISTORY g \(word)", "HISTORY g y before=\(word)", "HISTORY g y limit=\(word)", "VERSIONS \(word)",
            "VERSIONS since=\(word)", "VERSIONS collection=\(word)", "VERSIONS before=\(word)", "WATCH since=\(word)",
            "DEVICES after=\(word)", "DEVICES limit=\(word)", "REVOKE \(word)", "RENAME \(word) name=\(quoted)",
            "RENAME name=\(word)", "ROTATE \(word)=1", "IMPORT \(word)", "IMPORT DEVICE \(word) name=\(quoted)",
            "HELP \(word)", "TIME \(word)", "PING \(word)", "PAIR \(word)=\(word)", "LOGIN \(word)", "LINK \(word)",
        ]
    }

    private static func schema(_ connection: BlockingConnection) throws -> [String] {
        let rows = try connection.query(
            """
            SELECT string_agg(c.relname || ':' || c.relkind::text, ' ' ORDER BY c.relname)
              FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
            """)
        return [try rows.text(0, 0)]
    }

    @Test("what would steer a terminal comes into no name, id or collection, and nobody is sent it")
    func escapes() throws {
        let house = try House()
        let (client, _) = try newPlayer(house.daemon)
        for bad in ["\u{1B}[2J", "\u{9B}2J", "\u{7}", "\u{1B}]0;title\u{7}", "a\u{0}b", "\u{7F}"] {
            for line in [
                "RENAME name=\"a\(bad)b\"", "PUSH g\(bad) x {}", "PUSH g x\(bad) {}", "REGISTER device=\"\(bad)\"", bad,
            ] {
                let answer = try client.ask(line)
                #expect(answer.hasPrefix("ERR "), "\(line.debugDescription): \(answer)")
                #expect(answer.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F..<0xA0).contains($0.value) })
            }
        }
        // As an escape in a name, too.
        #expect(try client.ask("RENAME name=\"a\\u001b[2J\"").hasPrefix("ERR "))
        #expect(try client.ask("PING") == "OK")
    }
}
