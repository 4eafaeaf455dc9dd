import Arguments
import IeumClient
import TerminalText

/// The program: finds the command that a call names, runs it, and puts what went wrong into words.
struct Program {
    let environment: [String: String]
    let output: Output

    /// All commands, in the order of the help text.
    static let commands: [ProgramCommand] = [
        .register, .pair, .link, .push, .get, .delete, .pull, .watch, .history, .conflicts, .why, .show, .diff,
        .restore,
        .export, .importing, .play, .devices, .status, .ping, .version,
    ]

    /// Runs a call, given without the program's name.
    func run(_ arguments: [String]) -> ExitCode {
        guard let word = arguments.first else {
            output.talk(Self.overview)
            return .usage
        }
        let rest = arguments.dropFirst()
        switch word {
        case "help", "--help", "-h": return help(rest.first)
        case "--version": return run(.version, rest)
        default: break
        }
        guard let command = Self.commands.first(where: { $0.word == word }) else { return unknown(word) }
        if rest.prefix(while: { $0 != "--" }).contains(where: { $0 == "--help" || $0 == "-h" }) {
            return help(word)
        }
        return run(command, rest)
    }

    private func run(_ command: ProgramCommand, _ arguments: ArraySlice<String>) -> ExitCode {
        do {
            let parsed = try ParsedArguments(arguments, of: command.spec, environment: environment)
            return try command.run(Call(arguments: parsed, environment: environment, output: output))
        } catch {
            var failure = Failure(error)
            if failure.exitCode == .brokenPipe { return .brokenPipe }
            if failure.exitCode == .usage, failure.hint == nil || error is UsageError {
                failure.hint = "Usage: \(command.spec.usage)\nMore: ieum help \(command.word)"
            }
            report(failure, asJSON: arguments.prefix { $0 != "--" }.contains("--json"))
            return failure.exitCode
        }
    }

    private func report(_ failure: Failure, asJSON: Bool) {
        if asJSON {
            output.talk(failure.json)
        } else {
            for line in failure.lines { output.talk(line) }
        }
    }

    private func help(_ word: String?) -> ExitCode {
        var text = Self.overview
        if let word {
            guard let command = Self.commands.first(where: { $0.word == word }) else { return unknown(word) }
            text = command.help
        }
        do throws(Output.Broken) {
            try output.data(Array(text.utf8))
            return .done
        } catch {
            let failure = Failure(error)
            if failure.exitCode != .brokenPipe { report(failure, asJSON: false) }
            return failure.exitCode
        }
    }

    private func unknown(_ word: String) -> ExitCode {
        let suggestion = nearest(to: word, in: Self.commands.map(\.word) + ["help"])
        output.talk("ieum: there is no command \"\(String(word.prefix(60)).terminalSafe)\"")
        output.talk(suggestion.map { "  Did you mean ieum \($0)?" } ?? "  List the commands: ieum help")
        return .usage
    }

    /// What `ieum help` prints.
    static var overview: String {
        let width = commands.map(\.word.count).max() ?? 0
        let list = commands.map { "  \($0.word.padded(to: width))  \($0.spec.summary)" }.joined(separator: "\n")
        let codes = ExitCode.allCases
            .map { "  \(String($0.rawValue).padded(to: 3))  \($0.meaning)" }.joined(separator: "\n")
        return """
            ieum: games that continue on another device

            Usage: ieum <command> [arguments]

            Example: ieum register --server games.example.org:4386 --device laptop
                     ieum push handle.game today --file game.json
                     ieum pair

            Commands:
            \(list)
              \("help".padded(to: width))  this text, or all about one command: ieum help push

            Exit codes:
            \(codes)

            Environment:
              IEUM_HOME        the folder of this device's identity (default $XDG_CONFIG_HOME/ieum, else ~/.config/ieum)
              IEUM_SERVER      stands in for --server
              IEUM_INVITE      the invite for ieum register: a secret, and so not on the command line
              NO_COLOR         print without styles

            """
    }
}
