import Foundation
import Handle
import IeumClient
import Postgres
import TestSupport
import Testing

@Suite("ieum play on two devices")
struct PlayDevicesTests {
    private let database: TestDatabase
    private let daemon: DaemonProcess
    private let homes: PlayHomes
    private let phone: String
    private let tablet: String

    init() throws {
        database = try TestDatabase.migrated()
        daemon = try DaemonProcess(database: database.conninfo, port: Int(FreePort.find()))
        homes = try PlayHomes()
        (phone, tablet) = try homes.players(at: daemon.port)
    }

    /// Both devices on the game of day 273, up to date.
    private func open() throws -> (phone: PlayTerminal, tablet: PlayTerminal) {
        let both = (phone: try PlayTerminal(home: phone), tablet: try PlayTerminal(home: tablet))
        try both.phone.see("phone: up to date")
        try both.tablet.see("tablet: up to date")
        return both
    }

    private func leave(_ terminals: PlayTerminal...) throws {
        for terminal in terminals {
            terminal.type("\u{3}")
            #expect(try terminal.endRestored() == 0)
        }
    }

    @Test("a key pressed here is there within a second, and the guess with its marks; the other device goes on")
    func live() async throws {
        try await aside {
            let (phone, tablet) = try open()
            var times: [Double] = []
            for (key, shown) in [("구", "ㄱㅜ구"), ("ㄹ", "ㄱㅜㄹ굴"), ("ㅡ", "ㄱㅜㄹㅡ구르"), ("ㅁ", "ㄱㅜㄹㅡㅁ구름")] {
                let start = Date()
                phone.type(key)
                try tablet.see(row: 0, shown)
                times.append(-start.timeIntervalSinceNow)
            }
            let start = Date()
            phone.type("\r")
            try tablet.see("the guess is there") { $0.row == 4 }
            times.append(-start.timeIntervalSinceNow)
            print("PlayDevicesTests.live: five keys took \(times) s")
            #expect(try #require(times.median) < 1)
            tablet.guess("마음")
            try phone.see("the second guess is there") { $0.row == 6 && $0.board(1) == "ㅁㅏㅇㅡㅁ마음" }
            phone.guess("사람")
            try tablet.see("Splendid: 사람")
            try phone.see("Splendid: 사람")
            try leave(phone, tablet)
        }
    }

    @Test("offline the game goes on and says so; it comes back by itself, and the other device has it then")
    func offline() async throws {
        try await aside {
            let proxy = try SyncProxy(to: daemon.port)
            let homes = try PlayHomes()
            let (phone, tablet) = try homes.players(at: proxy.port)
            let here = try PlayTerminal(home: phone)
            try here.see("phone: up to date")
            // Nobody answers any more.
            let nobody = try FreePort.find()
            proxy.lead(to: Int(nobody))
            proxy.cutAll()
            try here.see("phone: offline, the game goes on")
            here.guess("구름")
            try here.see("phone: offline, the game goes on; 1 unsent game")
            try here.see("the guess is taken") { $0.row == 4 }
            proxy.lead(to: daemon.port)
            try here.see("phone: up to date", within: 90)
            let there = try PlayTerminal(home: tablet)
            try there.see(row: 0, "ㄱㅜㄹㅡㅁ구름")
            try leave(here, there)
        }
    }

    @Test("a server that dies does no harm to the game, nor to the terminal")
    func serverDies() async throws {
        try await aside {
            let (phone, tablet) = try open()
            daemon.kill()
            try phone.see("phone: offline")
            phone.guess("구름")
            try phone.see("the guess is taken") { $0.row == 4 }
            try leave(phone, tablet)
            try phone.see("the server gets it when ieum play is started the next time")
        }
    }

    @Test(
        "a conflict is shown with both boards and settled either way; what is not taken stays in the history",
        arguments: [false, true])
    func conflict(takesOther: Bool) async throws {
        try await aside {
            let (first, second) = try open()
            first.guess("구름")
            try second.see("the guess is there") { $0.row == 4 }
            try leave(first, second)

            // Each plays without the other: their server is out of reach.
            let port = daemon.port
            #expect(daemon.stop() == 0)
            let phone = try PlayTerminal(home: self.phone)
            try phone.see("phone: offline")
            phone.guess("보람")
            try phone.see("the guess is taken") { $0.row == 6 }
            try leave(phone)
            let tablet = try PlayTerminal(home: self.tablet)
            try tablet.see("tablet: offline")
            tablet.guess("사랑")
            try tablet.see("the guess is taken") { $0.row == 6 }
            try leave(tablet)

            let server = try DaemonProcess(database: database.conninfo, port: port)
            let later = try PlayTerminal(home: self.tablet)
            try later.see("tablet: up to date")
            // Nobody settles it; it is shown again at the next start.
            let unsettled = try PlayTerminal(home: self.phone)
            try unsettled.see("two devices have played it")
            try leave(unsettled)
            let earlier = try PlayTerminal(home: self.phone)
            let screen = try earlier.see("two devices have played it")
            let row = screen.lines[6]
            #expect(row.contains("ㅅ   ㅏ   ㄹ   ㅏ   ㅇ   사랑") && row.contains("ㅂ   ㅗ   ㄹ   ㅏ   ㅁ   보람"))
            #expect(
                screen.lines[2].contains("1  shown now: another device")
                    && screen.lines[2].contains("2  the other: phone"))
            // Letters wait until it is settled.
            earlier.type("하" + (takesOther ? "2" : "1"))
            let kept = takesOther ? "ㅂㅗㄹㅏㅁ보람" : "ㅅㅏㄹㅏㅇ사랑"
            try earlier.see(row: 1, kept)
            let settled = try earlier.see("\(takesOther ? "Taken" : "Kept"); the other one is in the history")
            #expect(settled.board(2) == "")
            try later.see(row: 1, kept)
            earlier.guess("사람")
            try later.see("Splendid: 사람")
            try leave(earlier, later)

            let rows = try database.connect().query(
                """
                SELECT outcome, handle_board(state, true) FROM history WHERE game_id = '2025-09-30'
                AND handle_board(state, true) LIKE '%\(takesOther ? "사랑" : "보람")'
                """)
            #expect(rows.affectedRowCount >= 1)
            #expect(server.stop() == 0)
        }
    }

    @Test(
        "a state that names another game is played as the game that it was pushed as",
        arguments: ["other", "a\\u001b[2J"])
    func namingAnother(name: String) async throws {
        try await aside {
            let (phone, tablet) = try open()
            phone.type("구")
            try tablet.see(row: 0, "ㄱㅜ구")
            let token = try String(contentsOfFile: self.tablet + "/token", encoding: .utf8)
            let client = try RawClient(port: daemon.port)
            _ = try client.ask("LOGIN \(token.trimmingCharacters(in: .whitespacesAndNewlines))")
            try client.send("GET handle.game 2025-09-30")
            let listed = try #require(try client.reply().first)
            let state = try #require(listed.firstRange(of: "{").map { String(listed[$0.lowerBound...]) })
            #expect(state.contains(#""id":"2025-09-30""#), "\(state)")
            let revision = try #require(listed.firstMatch(of: /revision=([0-9]+)/)?.1)
            let answer = try client.ask(
                "PUSH handle.game 2025-09-30 base=\(revision) "
                    + state.replacing(#""id":"2025-09-30""#, with: "\"id\":\"\(name)\""))
            #expect(answer.hasPrefix("OK outcome=advanced"), "\(answer)")
            phone.type("ㄹ")
            try phone.see(row: 0, "ㄱㅜㄹ굴")
            try tablet.see(row: 0, "ㄱㅜㄹ굴")
            try leave(phone, tablet)
            let games = try database.connect().query("SELECT DISTINCT game_id FROM history")
            #expect(games.affectedRowCount == 1)
        }
    }

    @Test("a device that was revoked plays on, and promises nothing for the next start")
    func revoked() async throws {
        try await aside {
            let (phone, tablet) = try open()
            let identity = try Data(contentsOf: URL(fileURLWithPath: self.tablet + "/identity.json"))
            let device = try #require(
                (try JSONSerialization.jsonObject(with: identity) as? [String: Any])?["device"] as? String)
            let call = try Programs.run(
                "ieum", ["devices", "revoke", device, "--yes"], environment: ["IEUM_HOME": self.phone])
            #expect(call.status == 0, "\(call)")
            try tablet.see("tablet: signed out, the game goes on")
            tablet.type("구")
            try tablet.see(row: 0, "ㄱㅜ구")
            tablet.type("\u{3}")
            #expect(try tablet.endRestored() == 0)
            try tablet.see("Saved here; the server takes nothing from this device any more.")
            try leave(phone)
        }
    }

    /// A game of another program's, in the same home.
    private struct Novel: Persistable {
        static let collection = "other.novel"
        var id = "mine"
        var timestamp = Date()
        var text = ""
        static var defaults: Novel? { Novel() }
    }

    private func save(_ text: String, in folder: String) throws {
        let home = DeviceHome(path: folder)
        var novel = Novel()
        novel.text = text
        try home.openStore(of: home.identity()).save(novel)
    }

    @Test("what becomes of another program's games is told, and not as if it were of this one")
    func otherProgramsGames() async throws {
        try await aside {
            try save(String(repeating: "x", count: 1_200_000), in: phone)
            let large = try PlayTerminal(home: phone)
            try large.see("The server does not take another game")
            large.guess("구름")
            try large.see("phone: up to date")
            try leave(large)

            // The tablet had seen nothing of this one.
            try save("on the phone", in: phone)
            let first = try PlayTerminal(home: phone)
            try first.see("phone: up to date")
            try leave(first)
            try save("on the tablet", in: tablet)
            let second = try PlayTerminal(home: tablet)
            try second.see("Another game has a conflict: ieum conflicts")
            try leave(second)
        }
    }

    @Test("the statistics on the screen are those of handle_statistics in psql")
    func statistics() async throws {
        try await aside {
            var random = SeededRandom(for: "PlayDevicesTests.statistics")
            let store = try GameStore(at: URL(fileURLWithPath: phone + "/games.sqlite"))
            var days = Array(200..<240).shuffled(using: &random)
            days.removeLast(Int.random(in: 0..<20, using: &random))
            var moment = Date(timeIntervalSince1970: 1_750_000_000)
            for day in days {
                var game = Game(day: day)
                let guesses = Int.random(in: 0...8, using: &random)
                for _ in 0..<min(guesses, 6) {
                    moment += 1
                    let wrong = game.answer == "구름" ? "마음" : "구름"
                    try game.type(wrong, at: moment)
                    _ = game.submit(at: moment)
                }
                if !game.isGameFinished, Bool.random(using: &random) {
                    moment += 1
                    try game.type(game.answer, at: moment)
                    _ = game.submit(at: moment)
                }
                try store.save(game)
            }
            let terminal = try PlayTerminal(home: phone)
            try terminal.see("phone: up to date")
            let rows = try database.connect().query(
                """
                SELECT played::text, won::text, round(win_percent)::text, current_streak::text, longest_streak::text,
                       in_1::text, in_2::text, in_3::text, in_4::text, in_5::text, in_6::text FROM handle_statistics
                """)
            #expect(rows.affectedRowCount == 1)
            let numbers = try (0..<11).map { try rows.text(0, $0) }
            let screen = try terminal.see("streak \(numbers[3])   longest \(numbers[4])")
            let own = Statistics(of: try store.objects(Game.self))
            #expect(
                [own.played, own.won, own.currentStreak, own.longestStreak].map(String.init)
                    == [numbers[0], numbers[1], numbers[3], numbers[4]])
            #expect(own.wonWith.map(String.init) == Array(numbers[5...]))
            #expect(screen.text.contains("played \(numbers[0])   won \(numbers[1]) ("))
            for index in 0..<6 where own.wonWith[index] > 0 {
                #expect(screen.lines[6 + index].hasSuffix(" \(own.wonWith[index])"))
            }
            try leave(terminal)
        }
    }

    @Test("what was played before there was a player is the player's after registering")
    func registeringLater() async throws {
        try await aside {
            let home = homes.home("later")
            let alone = try PlayTerminal(home: home)
            try alone.see("ieum register --server HOST:PORT --device NAME")
            alone.guess("구름")
            try alone.see("the guess is taken") { $0.row == 4 }
            try leave(alone)
            let result = try Programs.run(
                "ieum", ["register", "--server", "127.0.0.1:\(daemon.port)", "--device", "laptop"],
                environment: ["IEUM_HOME": home])
            #expect(result.status == 0, "\(result.error)")
            let terminal = try PlayTerminal(home: home)
            try terminal.see(row: 0, "ㄱㅜㄹㅡㅁ구름")
            try terminal.see("laptop: up to date")
            try leave(terminal)
            let rows = try database.connect().query("SELECT guesses FROM handle_games WHERE game_id = '2025-09-30'")
            #expect(rows.affectedRowCount == 1)
        }
    }
}
