import Foundation
import Handle
import IeumClient
import TestSupport
import Testing

/// The word of day 273 is 사람.
@Suite("ieum play on one device")
struct PlayTests {
    let homes: PlayHomes

    init() throws { homes = try PlayHomes() }

    @Test("a game is won with syllables, with letters, with Latin keys and in NFD, cut at any byte")
    func winning() async throws {
        try await aside { [homes] in
            let terminal = try PlayTerminal(home: homes.home("a"))
            try terminal.see("Guess the word")
            terminal.guess("구름")
            try terminal.see(row: 0, "ㄱㅜㄹㅡㅁ구름")
            terminal.guess("ㅁㅏㅇㅡㅁ")
            try terminal.see(row: 1, "ㅁㅏㅇㅡㅁ마음")
            terminal.guess("skanf")
            try terminal.see(row: 2, "ㄴㅏㅁㅜㄹ나물")
            for byte in "보람".decomposedStringWithCanonicalMapping.utf8 { terminal.type([byte]) }
            try terminal.see(row: 3, "ㅂㅗㄹㅏㅁ보람")
            terminal.type("\r")
            try terminal.see("the guess is taken") { $0.row == 10 }
            terminal.type("사랖\u{7F}ㅁ\r")
            let screen = try terminal.see("Good: 사람")
            #expect(screen.text.contains("한들 273 5/6"))
            #expect(screen.text.contains("🟩🟩🟩🟩🟩"))
            try terminal.see("played 1   won 1 (100 %)")
            #expect(!terminal.screen.current.isCursorShown)
            terminal.type("\u{3}")
            #expect(try terminal.endRestored() == 0)
            // The result is left on the screen below, to be copied.
            #expect(terminal.screen.current.text.contains("한들 273 5/6"))
            #expect(terminal.screen.current.text.contains("⬛⬛🟩🟩🟩\n🟩🟩🟩🟩🟩"))
        }
    }

    @Test("six wrong words lose; the day's result is there at the next start, and Enter goes on to another word")
    func losing() async throws {
        try await aside { [homes] in
            let terminal = try PlayTerminal(home: homes.home("a"))
            try terminal.see("Guess the word")
            for row in 0..<6 {
                terminal.guess("구름")
                try terminal.see(row: row, "ㄱㅜㄹㅡㅁ구름")
            }
            try terminal.see("The word was 사람")
            try terminal.see("played 1   won 0 (0 %)")
            terminal.signal(SIGKILL)
            #expect(try terminal.end() == -SIGKILL)

            let again = try PlayTerminal(home: homes.home("a"))
            try again.see("한들 273 X/6")
            try again.see("Enter plays the word of the day")
            again.type("\r")
            try again.see("Guess the word")
            again.type("\u{4}")
            #expect(try again.endRestored() == 0)
        }
    }

    @Test("after every key the program may be killed: the next start shows that key")
    func killedAfterEachKey() async throws {
        try await aside { [homes] in
            let keys: [(key: String, row: Int, shown: String)] = [
                ("t", 0, "ㅅㅅ"), ("k", 0, "ㅅㅏ사"), ("ㄹ", 0, "ㅅㅏㄹ살"), ("아", 0, "ㅅㅏㄹㅇㅏ살아"), ("\u{7F}", 0, "ㅅㅏㄹㅇ살ㅇ"),
                ("\u{8}", 0, "ㅅㅏㄹ살"), ("앙", 0, "ㅅㅏㄹㅇㅏ살아"), ("\u{7F}\u{7F}", 0, "ㅅㅏㄹ살"), ("ㅏ", 0, "ㅅㅏㄹㅏ사라"),
                ("ㅇ", 0, "ㅅㅏㄹㅏㅇ사랑"), ("\r", 0, "ㅅㅏㄹㅏㅇ사랑"), ("구", 1, "ㄱㅜ구"),
            ]
            for (key, row, shown) in keys {
                let terminal = try PlayTerminal(home: homes.home("a"))
                try terminal.see("한들 273")
                terminal.type(key)
                try terminal.see(row: row, shown)
                if key == "\r" { try terminal.see("the next row is begun") { $0.row == 4 } }
                terminal.signal(SIGKILL)
                #expect(try terminal.end() == -SIGKILL)
                let next = try PlayTerminal(home: homes.home("a"))
                try next.see(row: row, shown)
                if key == "\r" { try next.see("the next row is begun") { $0.row == 4 } }
                next.signal(SIGKILL)
                #expect(try next.end() == -SIGKILL)
            }
        }
    }

    @Test("a guess is looked up in the dictionary; what is in none is taken by a second Enter")
    func dictionary() async throws {
        try await aside { [homes] in
            let terminal = try PlayTerminal(home: homes.home("a"))
            try terminal.see("Guess the word")
            // In no list of answers, but a word. On a busy machine the dictionary is read only when it is asked again.
            terminal.guess("창피")
            for _ in 0..<10 {
                let screen = try terminal.see("an answer") { $0.row == 4 || $0.text.contains("No dictionary") }
                if screen.row == 4 { break }
                terminal.type("\u{7F}")
                try terminal.see("the question is taken back") { !$0.text.contains("No dictionary") }
                terminal.type("ㅣ\r")
            }
            try terminal.see("the guess is taken") { $0.row == 4 }
            terminal.guess("꼮묘")
            try terminal.see(row: 1, "ㄱㄱㅗㄱㄱ꼮")
            try terminal.see("꼮 is in no dictionary here; Enter takes it")
            terminal.type("\r")
            try terminal.see("the guess is taken") { $0.row == 6 }
            terminal.type("\u{3}")
            #expect(try terminal.endRestored() == 0)

            let bare = try PlayTerminal(home: homes.home("b"), environment: ["PATH": "/nonexistent"])
            try bare.see("Guess the word")
            bare.guess("창피")
            try bare.see("No dictionary to look 창피 up; Enter takes it")
            // The row that was taken back asks anew.
            bare.type("\u{7F}")
            try bare.see("the question is taken back") { !$0.text.contains("No dictionary") }
            bare.type("ㅣ\r")
            try bare.see("No dictionary to look 창피 up; Enter takes it")
            bare.type("\r")
            try bare.see("the guess is taken") { $0.row == 4 }
            bare.type("\u{3}")
            #expect(try bare.endRestored() == 0)
        }
    }

    @Test("practice goes on where it stopped, and is not the day's word")
    func practice() async throws {
        try await aside { [homes] in
            let terminal = try PlayTerminal(["--practice"], home: homes.home("a"))
            try terminal.see("한들 practice")
            terminal.guess("구름")
            try terminal.see(row: 0, "ㄱㅜㄹㅡㅁ구름")
            try terminal.see("the guess is taken") { $0.row == 4 || $0.text.contains("Unbelievable") }
            terminal.type("\u{3}")
            #expect(try terminal.endRestored() == 0)
            let store = try GameStore(at: URL(fileURLWithPath: homes.home("a") + "/games.sqlite"))
            let game = try #require(try store.latest(Game.self))
            #expect(game.isPractice && game.guesses.count == 1)
            if !game.isGameFinished {
                let again = try PlayTerminal(["--practice"], home: homes.home("a"))
                try again.see(row: 0, "ㄱㅜㄹㅡㅁ구름")
                again.type("\u{3}")
                #expect(try again.endRestored() == 0)
            }
        }
    }

    @Test("a window that changes its size is drawn anew; one that is too small says so, waits, and takes no letters")
    func resizing() async throws {
        try await aside { [homes] in
            let terminal = try PlayTerminal(home: homes.home("a"))
            try terminal.see("Guess the word")
            terminal.type("사")
            try terminal.see(row: 0, "ㅅㅏ사")
            terminal.resize(width: 60, height: 20)
            try terminal.see("needs 80 columns and 24 rows; here are 60")
            // Drawn anew by a key after the letters: they have been read.
            terminal.screen.change { $0 = ScreenModel(width: 60, height: 20) }
            terminal.type("람\u{C}")
            try terminal.see("needs 80 columns and 24 rows; here are 60")
            terminal.resize(width: 1, height: 1)
            terminal.resize(width: 120, height: 40)
            let screen = try terminal.see("the game in the middle") { $0.lines[10].contains("사") }
            #expect(screen.lines[10].hasPrefix(String(repeating: " ", count: 24) + "ㅅ   ㅏ   __   __   __   사 "))
            terminal.type("람")
            try terminal.see("the game goes on") { $0.lines[10].contains("사람") }
            terminal.resize(width: 80, height: 24)
            try terminal.see(row: 0, "ㅅㅏㄹㅏㅁ사람")
            terminal.type("\u{C}")
            try terminal.see(row: 0, "ㅅㅏㄹㅏㅁ사람")
            terminal.type("\u{3}")
            #expect(try terminal.endRestored() == 0)
        }
    }

    @Test(
        "without colours the marks are signs, and a terminal that can do nothing gets lines",
        arguments: ["NO_COLOR", "dumb"])
    func plain(kind: String) async throws {
        try await aside { [homes] in
            let environment = kind == "dumb" ? ["TERM": "dumb"] : ["NO_COLOR": "1"]
            let terminal = try PlayTerminal(home: homes.home(kind), environment: environment)
            try terminal.see("Guess the word")
            terminal.guess("마음")
            try terminal.see("-ㅁ- [ㅏ] -ㅇ- -ㅡ- [ㅁ]")
            terminal.guess("나물")
            try terminal.see("-ㄴ- [ㅏ] (ㅁ) -ㅜ- (ㄹ)")
            terminal.guess("사람")
            try terminal.see("Splendid: 사람")
            try terminal.see("한들 273 3/6")
            terminal.type("\u{3}")
            #expect(try terminal.endRestored() == 0)
            let text = String(decoding: terminal.sent.current, as: UTF8.self)
            #expect(!text.contains("\u{1B}[0;"))
            #expect(kind != "dumb" || !text.contains("\u{1B}"))
        }
    }

    @Test("without a terminal it says so, with a code and a hint")
    func noTerminal() throws {
        let result = try Programs.run("ieum", ["play"], environment: ["IEUM_HOME": homes.home("a")])
        #expect(result.status == 2)
        #expect(result.error.contains("ieum play needs a terminal") && result.error.contains("without a pipe"))
        #expect(result.output.isEmpty)
        #expect(!FileManager.default.fileExists(atPath: homes.home("a")))
    }
}
