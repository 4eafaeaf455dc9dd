import Foundation
import Handle
import Testing

@testable import Play

/// A game of day 273, whose word is 사람.
private func game(_ guesses: String..., typed: String = "") throws -> Game {
    var game = Game(day: 273)
    let moment = Date(timeIntervalSince1970: 1_759_000_000)
    for guess in guesses {
        try game.type(guess, at: moment)
        _ = game.submit(at: moment)
    }
    try game.type(typed, at: moment)
    return game
}

private func session(_ game: Game, _ connection: Connection = Connection(.upToDate, device: "phone")) -> PlaySession {
    PlaySession(game, connection: connection)
}

private func statistics() -> Statistics {
    Statistics(
        of: (0..<12).compactMap { index -> Game? in
            var game = Game(day: 200 + index)
            let moment = Date(timeIntervalSince1970: 1_750_000_000 + Double(index))
            for _ in 0..<(index == 4 ? 6 : index % 5) {
                _ = try? game.type("구름", at: moment)
                _ = game.submit(at: moment)
            }
            if index != 4 {
                _ = try? game.type(game.answer, at: moment)
                _ = game.submit(at: moment)
            }
            return game
        })
}

@Suite("The screen")
struct ScreenTests {
    @Test("a game under way, with colours: exactly these 24 lines")
    func underWay() throws {
        var session = session(try game("구름", "나물", typed: "마"))
        session.statistics = statistics()
        let canvas = session.canvas(hasColours: true)
        #expect(
            canvas.lines == [
                "   한들 273   2025-09-30",
                "",
                "    ㄱ   ㅜ   ㄹ   ㅡ   ㅁ   구름                   Statistics",
                "                                                    played 12   won 11 (92 %)",
                "    ㄴ   ㅏ   ㅁ   ㅜ   ㄹ   나물                   streak 7   longest 7",
                "",
                "    ㅁ   ㅏ   __   __   __   마                     1                    3",
                "                                                    2                    3",
                "    __   __   __   __   __                          3              2",
                "                                                    4              2",
                "    __   __   __   __   __                          5        1",
                "                                                    6",
                "    __   __   __   __   __",
                "",
                "",
                "",
                "    ㅂ   ㅈ   ㄷ   ㄱ   ㅅ   ㅛ   ㅕ   ㅑ",
                "     ㅁ   ㄴ   ㅇ   ㄹ   ㅎ   ㅗ   ㅓ   ㅏ   ㅣ",
                "      ㅋ   ㅌ   ㅊ   ㅍ   ㅠ   ㅜ   ㅡ",
                "",
                "    ㅎ  right place   ㅎ  wrong place   ㅎ  absent",
                "",
                "   Enter guesses   Backspace takes back   Ctrl-C leaves",
                "   phone: up to date",
            ])
        #expect(canvas.cursor == Canvas.Place(row: 6, column: 14))
        // The mark of each letter is its colour.
        #expect(canvas.rows[2][3..<27].filter { $0.style == .rightPlace }.count == 8)
        #expect(canvas.rows[4][13].style == .wrongPlace)
        #expect(canvas.rows[6][3].style == .open)
        #expect(canvas.rows.allSatisfy { $0.count == 80 })
    }

    @Test("a notice has the whole line until the result stands beside it")
    func longNotice() throws {
        var open = session(try game("구름", typed: "사람"))
        _ = open.press(.letters([.giyeok]))
        #expect(open.canvas(hasColours: true).lines[14] == "   The row is full: Enter guesses, Backspace takes back")
        let text = String(repeating: "x", count: 100)
        open.say(text)
        #expect(open.canvas(hasColours: true).lines[14] == "   " + text.prefix(76))
        var won = session(try game("사람"))
        won.say(text)
        #expect(won.canvas(hasColours: true).lines[14].hasPrefix("   \(text.prefix(48)) 한들 273"))
    }

    @Test("a won game, without colours: exactly these 24 lines")
    func won() throws {
        var session = session(try game("구름", "나물", "사람"), Connection(.offline, device: "phone", unsent: 1))
        session.statistics = Statistics(of: [session.game])
        let canvas = session.canvas(hasColours: false)
        #expect(
            canvas.lines == [
                "   한들 273   2025-09-30",
                "",
                "   -ㄱ- -ㅜ- [ㄹ] -ㅡ- [ㅁ]  구름                   Statistics",
                "                                                    played 1   won 1 (100 %)",
                "   -ㄴ- [ㅏ] (ㅁ) -ㅜ- (ㄹ)  나물                   streak 1   longest 1",
                "",
                "   [ㅅ] [ㅏ] [ㄹ] [ㅏ] [ㅁ]  사람                   1",
                "                                                    2",
                "    __   __   __   __   __                          3 ################## 1",
                "                                                    4",
                "    __   __   __   __   __                          5",
                "                                                    6",
                "    __   __   __   __   __",
                "",
                "   Splendid: 사람                                   한들 273 3/6",
                "",
                "    ㅂ   ㅈ   ㄷ  -ㄱ- [ㅅ]  ㅛ   ㅕ   ㅑ           ⬛⬛🟩⬛🟩",
                "    [ㅁ] -ㄴ-  ㅇ  [ㄹ]  ㅎ   ㅗ   ㅓ  [ㅏ]  ㅣ     ⬛🟩🟨⬛🟨",
                "      ㅋ   ㅌ   ㅊ   ㅍ   ㅠ  -ㅜ- -ㅡ-             🟩🟩🟩🟩🟩",
                "",
                "   [ㅎ] right place  (ㅎ) wrong place  -ㅎ- absent",
                "",
                "   Enter plays for practice   Ctrl-C leaves",
                "   phone: offline, the game goes on; 1 unsent game",
            ])
        #expect(canvas.cursor == nil)
    }

    @Test("a conflict: both boards side by side, exactly these 24 lines")
    func clash() throws {
        var session = session(try game("구름", "사랑"))
        session.met(
            Clash(
                shown: .init(device: "another device", time: "20:12", game: try game("구름", "사랑")),
                other: .init(device: "phone", time: "20:10", game: try game("구름", "보람", typed: "하"))))
        #expect(
            session.canvas(hasColours: false).lines == [
                "   한들 273   2025-09-30   two devices have played it",
                "",
                "   1  shown now: another device, 20:12    2  the other: phone, 20:10",
                "",
                "   -ㄱ- -ㅜ- [ㄹ] -ㅡ- [ㅁ]  구름         -ㄱ- -ㅜ- [ㄹ] -ㅡ- [ㅁ]  구름",
                "",
                "   [ㅅ] [ㅏ] [ㄹ] [ㅏ] -ㅇ-  사랑         -ㅂ- -ㅗ- [ㄹ] [ㅏ] [ㅁ]  보람",
                "",
                "    __   __   __   __   __                 ㅎ   ㅏ   __   __   __   하",
                "",
                "    __   __   __   __   __                 __   __   __   __   __",
                "",
                "    __   __   __   __   __                 __   __   __   __   __",
                "",
                "    __   __   __   __   __                 __   __   __   __   __",
                "",
                "",
                "   Neither had seen the other, so the later one is shown. Both are kept:",
                "   what you do not take stays in the history (ieum history).",
                "",
                "   [ㅎ] right place  (ㅎ) wrong place  -ㅎ- absent",
                "",
                "   1 keeps what is shown   2 takes the other   Ctrl-C leaves",
                "   phone: up to date",
            ])
        #expect(session.press(.letters([.a])) == [] && session.press(.enter) == [])
        #expect(session.press(.digit(1)) == [.settle(takingOther: false)])
        #expect(session.press(.digit(2)) == [.settle(takingOther: true)])
        #expect(session.press(.leave) == [.leave])
    }

    @Test("any size is drawn within its bounds; below 80 columns or 24 rows it says what it needs")
    func sizes() throws {
        var session = session(try game("구름"))
        for width in [0, 1, 2, 10, 40, 79, 80, 81, 200] {
            for height in [0, 1, 5, 23, 24, 60] {
                session.size = (width, height)
                let canvas = session.canvas(hasColours: true)
                #expect(canvas.rows.count == height && canvas.rows.allSatisfy { $0.count == width })
                let isRoomy = width >= 80 && height >= 24
                #expect(isRoomy == canvas.lines.contains { $0.contains("구름") })
                if !isRoomy, width >= 40, height >= 5 {
                    #expect(canvas.lines[0].hasPrefix("한들 needs 80 columns and 24"))
                }
                #expect(session.press(.letters([.a])).isEmpty == !isRoomy)
            }
        }
    }

    @Test("only rows that differ are painted, and a wide character never half")
    func painting() throws {
        var painter = Painter(.colours)
        var session = session(try game("구름"))
        let first = painter.paint(session.canvas(hasColours: true))
        #expect(first.contains("\u{1B}[2J") && first.contains("\u{1B}[0;30;42m ㄹ \u{1B}[0m"))
        session.played(try game("구름", typed: "사"))
        let second = painter.paint(session.canvas(hasColours: true))
        #expect(second.contains("\u{1B}[5;1H") && !second.contains("구름") && !second.contains("\u{1B}[2J"))
        #expect(painter.paint(session.canvas(hasColours: true)) == "\u{1B}[5;15H\u{1B}[?25h")
        painter.forget()
        #expect(painter.paint(session.canvas(hasColours: true)).contains("구름"))

        var lines = Painter(.linesOnly)
        #expect(lines.paint(session.canvas(hasColours: false)).contains("-ㄱ- -ㅜ- [ㄹ]"))
        session.played(try game("구름", typed: "사ㄹ"))
        let line = "    ㅅ   ㅏ   ㄹ   __   __   살"
        let printed = lines.paint(session.canvas(hasColours: false))
        #expect(printed.hasPrefix(line) && printed.split(separator: "\r\n").count == 1)
    }
}
