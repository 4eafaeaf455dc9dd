import Foundation
import TestSupport
import Testing

@Suite("every way out of ieum play")
struct PlayExitTests {
    let homes: PlayHomes

    init() throws { homes = try PlayHomes() }

    @Test("leaves the terminal as it was", arguments: ["\u{3}", "\u{4}"])
    func leaving(key: String) async throws {
        try await aside { [homes] in
            let terminal = try PlayTerminal(home: homes.home("a"))
            try terminal.see("Guess the word")
            #expect(try terminal.settings() != terminal.before)
            #expect(terminal.screen.current.isAlternate && terminal.screen.current.isPasteBracketed)
            terminal.type("사" + key)
            #expect(try terminal.endRestored() == 0)
            let farewell = Array("\u{1B}[0m\u{1B}[?2004l\u{1B}[?25h\u{1B}[?1049l".utf8)
            #expect(terminal.sent.current.suffix(farewell.count) == farewell[...])
        }
    }

    @Test(
        "a signal has its own effect, and the terminal is as it was",
        arguments: [
            SIGTERM, SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ, SIGPOLL, SIGPWR,
            34, 64,
        ])
    func signals(number: Int32) async throws {
        try await aside { [homes] in
            let terminal = try PlayTerminal(home: homes.home("a"))
            try terminal.see("Guess the word")
            terminal.signal(number)
            #expect(try terminal.endRestored() == -number)
        }
    }

    @Test(
        "a fault of the program's own is reported as what it is, and the terminal is as it was",
        arguments: [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGQUIT])
    func faults(number: Int32) async throws {
        try await aside { [homes] in
            let terminal = try PlayTerminal(home: homes.home("a"))
            try terminal.see("Guess the word")
            terminal.signal(number)
            #expect(try terminal.endRestored() == -number)
        }
    }

    @Test("a terminal that takes nothing holds no signal up, and shows the game when it goes on")
    func stalled() async throws {
        try await aside { [homes] in
            let terminal = try PlayTerminal(home: homes.home("a"))
            try terminal.see("Guess the word")
            try terminal.stall()
            terminal.goOn()
            terminal.type("사")
            try terminal.see(row: 0, "ㅅㅏ사")
            try terminal.stall()
            terminal.signal(SIGTERM)
            #expect(try terminal.end() == -SIGTERM)
            #expect(try terminal.settings() == terminal.before)
        }
    }

    @Test("an error is told below, and the terminal is as it was")
    func error() async throws {
        try await aside { [homes] in
            let terminal = try PlayTerminal(home: homes.home("a"))
            try terminal.see("Guess the word")
            terminal.type("사")
            try terminal.see(row: 0, "ㅅㅏ사")
            // The store's file goes: what is typed now could not be kept.
            for name in try FileManager.default.contentsOfDirectory(atPath: homes.home("a")) {
                try FileManager.default.removeItem(atPath: homes.home("a") + "/" + name)
            }
            terminal.type("람")
            #expect(try terminal.endRestored() == 1)
            try terminal.see("ieum: ")
        }
    }

    /// The kernel tells of a closed window by SIGHUP and SIGCONT, and to a program that stands both come at once.
    @Test("a window that is closed ends the program, and what was typed is kept", arguments: [false, true])
    func hangUp(isStopped: Bool) async throws {
        try await aside { [homes] in
            let terminal = try PlayTerminal(home: homes.home("a"))
            try terminal.see("Guess the word")
            terminal.type("사")
            try terminal.see(row: 0, "ㅅㅏ사")
            if isStopped { terminal.signal(SIGSTOP) }
            terminal.hangUp()
            #expect([0, -SIGHUP].contains(try terminal.end()))
            let again = try PlayTerminal(home: homes.home("a"))
            try again.see(row: 0, "ㅅㅏ사")
            again.type("\u{3}")
            #expect(try again.endRestored() == 0)
        }
    }

    @Test("Ctrl-Z gives the shell its terminal, fg the game; so does a stop from outside")
    func suspending() async throws {
        try await aside { [homes] in
            let shell = try PlayTerminal(
                program: "/bin/bash", ["--norc", "--noprofile", "-i"],
                environment: ["IEUM_HOME": homes.home("a"), "PS1": "ready> ", "HISTFILE": ""])
            try shell.see("ready>")
            shell.type("\(Programs.url("ieum").path) play --day 273\r")
            try shell.see("Guess the word")
            shell.type("사")
            try shell.see(row: 0, "ㅅㅏ사")
            shell.type("\u{1A}")
            try shell.see("Stopped")
            #expect(!shell.screen.current.isAlternate && shell.screen.current.isCursorShown)
            shell.type("fg\r")
            try shell.see(row: 0, "ㅅㅏ사")
            shell.type("라")
            try shell.see(row: 0, "ㅅㅏㄹㅏ사라")

            let children = try Programs.runInstalled(["pgrep", "-P", "\(shell.process)"]).output
            let game = try #require(pid_t(children.trimmingCharacters(in: .whitespacesAndNewlines)))
            kill(game, SIGTSTP)
            // It says so when the game has stopped; what is typed earlier is thrown away with the game's keys.
            try shell.see("the shell is back, a second time") {
                !$0.isAlternate && $0.isCursorShown && $0.text.components(separatedBy: "Stopped").count == 3
            }
            shell.type("fg\r")
            try shell.see(row: 0, "ㅅㅏㄹㅏ사라")
            // This one cannot be heard, so the shell writes over the game until that is drawn anew.
            kill(game, SIGSTOP)
            try shell.see("the shell is back") { $0.text.contains("ready>") && $0.text.contains("Stopped") }
            shell.type("clear; fg\r")
            try shell.see("the game is drawn anew") { $0.board(0) == "ㅅㅏㄹㅏ사라" && !$0.text.contains("ready>") }
            shell.type("ㅇ")
            try shell.see(row: 0, "ㅅㅏㄹㅏㅇ사랑")
            shell.type("\u{3}")
            try shell.see("the shell is back") { !$0.isAlternate && $0.text.contains("ready>") }
            try eventually(60, "the game has ended") { kill(game, 0) != 0 }
            shell.type("exit\r")
            #expect(try shell.end() == 0)
            #expect(shell.screen.current.isCursorShown)
        }
    }

    @Test("10,000 random byte strings do no harm, and put nothing odd on the screen")
    func randomBytes() async throws {
        try await aside { [homes] in
            var random = SeededRandom(for: "PlayExitTests.randomBytes")
            let terminal = try PlayTerminal(home: homes.home("a"))
            try terminal.see("Guess the word")
            for _ in 0..<10_000 {
                var bytes = random.bytes(Int.random(in: 1...24, using: &random))
                // What ends or stops the game, or takes a guess, has tests of its own.
                bytes = bytes.map { [0x03, 0x04, 0x1A].contains($0) ? 0x1B : $0 }
                terminal.type(bytes)
            }
            // Whatever was begun is over after a moment's rest, and then the way out is open.
            try terminal.see("the game is still there") { $0.text.contains("한들") }
            #expect(kill(terminal.process, 0) == 0)
            terminal.type("\u{3}")
            #expect(try terminal.endRestored(within: 120) == 0)
        }
    }
}
