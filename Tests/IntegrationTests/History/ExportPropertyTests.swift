import Foundation
import Postgres
import TestSupport
import Testing
import Wire

/// Random histories of several devices, through the programs and over real connections.
@Suite("export, import and export again")
struct ExportPropertyTests {
    private static let ids = ["today", "한글", "é{x}", "a/b:c", "漢字😀", String(repeating: "ü", count: 64)]
    private static let states = [
        "{}", "null", "0", "-0.0e-0", "\"\\ud83d\\ude00\\/\"", "[ 1 ,\t2 ]  ", "{\"키\" : {\"state\":null} , \"키\":2}",
        "123456789012345678901234567890.00100", "1e400", "{\"a\":\",\\\"state\\\":\"}", "\"\u{7F}\u{200B}\"",
        String(repeating: "[", count: 512) + String(repeating: "]", count: 512),
    ]

    @Test("give the same, whatever was pushed and pruned", arguments: [0, 1])
    func sameAgain(part: Int) throws {
        let histories = 150
        var random = SeededRandom(for: "export and import \(part)")
        let house = try ImportHouse()
        let connection = try house.database.connect()
        var outcomes: [String: Int] = [:]
        for number in 0..<histories {
            let phone = try CommandLineDevice(registeredAt: house.here, name: "phone 전화 \(number)")
            let clients = try devices(of: phone, house, using: &random)
            var last: Int64 = 0
            var heads: [String: String] = [:]
            var said: [Int: (game: String, line: String)] = [:]
            for _ in 0..<Int.random(in: 0...40, using: &random) {
                let index = Int.random(in: clients.indices, using: &random)
                var (game, line) = push(last, heads, using: &random)
                // Now and then the same device says again what it said before.
                if let old = said[index], Int.random(in: 0..<8, using: &random) == 0 { (game, line) = old }
                said[index] = (game, line)
                let answer = try clients[index].ask(line)
                let answered = fields(answer)
                if let revision = answered["revision"].flatMap({ Int64($0) }) { last = max(last, revision) }
                outcomes[answered["outcome"] ?? String(answer.prefix(20)), default: 0] += 1
                if ["created", "advanced", "won"].contains(answered["outcome"]) { heads[game] = answered["revision"] }
            }
            if Bool.random(using: &random), last > 0 {
                let player = try #require(try phone.run("status", "--json").object()["player"] as? String)
                let (keep, page) = (Int.random(in: 0...3, using: &random), Int64.random(in: 1...last, using: &random))
                try connection.execute(
                    "SELECT prune_versions(now() + interval '1 day', \(keep), '\(player)', 0, \(page), false)")
            }
            let exported = try phone.export()
            let copy = try CommandLineDevice(registeredAt: house.there, name: "copy")
            let imported = try copy.importing(exported)
            try #require(imported.status == 0, "\(imported)\n\(exported)")
            try #require(try history(copy.export()) == history(exported))
            let (before, after) = (try phone.connection(to: house.here), try copy.connection(to: house.there))
            try before.send("PULL since=0 limit=1000")
            try after.send("PULL since=0 limit=1000")
            let games = try before.reply()
            try #require(try after.reply() == games)
            for game in games.dropLast() {
                let words = game.split(separator: " ")
                last += 1
                let answer = try after.ask("PUSH \(words[1]) \(words[2]) base=\(fields(game)["revision"] ?? "") {}")
                try #require(answer.hasPrefix("OK outcome=advanced revision=\(last) "), "\(answer)\n\(exported)")
            }
        }
        for outcome in ["created", "advanced", "won", "lost", "repeated"] {
            #expect(outcomes[outcome, default: 0] > 20, "\(outcomes)")
        }
    }

    private func devices(
        of phone: CommandLineDevice, _ house: ImportHouse, using random: inout SeededRandom
    ) throws -> [RawClient] {
        var clients = [try phone.connection(to: house.here)]
        for number in 0..<Int.random(in: 0...2, using: &random) {
            let code = try #require(fields(try clients[0].ask("PAIR"))["code"])
            let client = try RawClient(port: number == 0 ? house.here.port : house.there.port)
            #expect(try client.ask("LINK \(code) device=\"\\\"기기\\\" \(number) 😀\"").hasPrefix("OK "))
            clients.append(client)
        }
        return clients
    }

    /// A push or a deletion, good or bad; now and then one of a clock that is far off.
    private func push(
        _ last: Int64, _ heads: [String: String], using random: inout SeededRandom
    ) -> (game: String, line: String) {
        let collection = Bool.random(using: &random) ? "c" : "handle.game"
        let game = "\(collection) \(Self.ids.randomElement(using: &random) ?? "today")"
        let base =
            switch Int.random(in: 0..<9, using: &random) {
            case 0: ""
            case 1: " base=0"
            case 2: " base=\(Int64.random(in: 0...(last + 3), using: &random))"
            case 3, 4: heads[game].flatMap { Int64($0) }.map { " base=\(max(1, $0 - 1))" } ?? ""
            default: heads[game].map { " base=\($0)" } ?? " base=0"
            }
        let saved =
            switch Int.random(in: 0..<6, using: &random) {
            case 0: " saved=2031-01-01T00:00:0\(Int.random(in: 0...9, using: &random))Z"
            case 1: " saved=1970-01-01T00:00:0\(Int.random(in: 0...9, using: &random))Z"
            case 2, 3: " saved=2026-11-29T20:00:00.0000\(Int.random(in: 10...99, using: &random))Z"
            default: ""
            }
        if Int.random(in: 0..<6, using: &random) == 0 { return (game, "DELETE \(game)\(saved)\(base)") }
        let state = Self.states.randomElement(using: &random) ?? "{}"
        return (game, "PUSH \(game)\(saved)\(base) schema=\(Int.random(in: 0...3, using: &random)) \(state)")
    }
}
