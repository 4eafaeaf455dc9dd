import Arguments
import Foundation
import Glibc
import Handle
import IeumClient
import Play
import TerminalText

extension ProgramCommand {
    /// `ieum play`
    static let play = ProgramCommand(
        spec: CommandSpec(
            "ieum play", "play 한들, the word game, here and on your other devices",
            options: [
                OptionSpec("practice", help: "another word than the day's"),
                OptionSpec("day", "NUMBER", help: "the word of an earlier day; 1 is the first of January 2025"),
            ],
            examples: ["ieum play", "ieum play --practice"],
            exitCodes: [ExitCode.done, .refused, .usage].map(\.entry) + [(129, "hung up"), (143, "terminated")]),
        notes: [
            """
            Guess a Korean word of five basic letters: 사람 is ㅅㅏㄹㅏㅁ. Type Hangul, or the keys on which the letters stand (two-set:
            q is ㅂ). The word is the same for everybody, and changes at midnight in Korea. Every key is saved; the game goes on here,
            and on every device of yours, at once when it is online. It needs a terminal of 80 columns and 24 rows.
            """
        ]
    ) { call in
        try call.play()
    }
}

extension Call {
    fileprivate func play() throws -> ExitCode {
        let opening = try opening()
        guard let terminal = Terminal(environment: environment) else {
            throw Failure(
                .usage, code: "no-terminal", "ieum play needs a terminal, for its keys and for its screen",
                hint: "Run it without a pipe or a redirection. What was played: ieum pull --since 0")
        }
        let (home, identity) = (try home(), try identityIfThere())
        // Without an identity the games stay here until there is one.
        let store = try home.openStore(of: identity, schemaVersion: 0)
        tellDamage(of: store)
        let sync = try identity.map { try SyncEngine(store: store, of: home, as: $0) }
        let words = HunspellBook(environment: environment)
        let loop = try PlayLoop(
            on: terminal, store: store, sync: sync, device: identity?.deviceName.terminalSafe, opening: opening,
            words: words)
        defer { words.end() }
        let end = try loop.run()
        if case .signal(let number) = end {
            // Now it has the effect that whoever sent it expects.
            signal(number, SIG_DFL)
            raise(number)
        }
        if let text = loop.farewell { try output.data(Array((text + "\n").utf8)) }
        if !loop.waitUntilSent(atMost: .seconds(1)) {
            output.talk(
                loop.isSignedOut
                    ? "Saved here; the server takes nothing from this device any more. See ieum status."
                    : "Saved here; the server gets it when ieum play is started the next time.")
        }
        return .done
    }

    private func opening() throws -> PlayLoop.Opening {
        let today = AnswerWords.number(of: Date())
        let day = try arguments.integer("day", in: 1...max(1, today))
        guard day == nil || !arguments.flag("practice") else {
            throw UsageError("--day and --practice exclude each other")
        }
        return arguments.flag("practice") ? .practice : day.map { .day($0) } ?? .today
    }

    /// Whose home it is; nil: nobody's yet.
    private func identityIfThere() throws -> Identity? {
        do {
            return try home().identity()
        } catch let error as HomeError where error.kind == .noIdentity {
            return nil
        }
    }
}
