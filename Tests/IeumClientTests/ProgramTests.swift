import Arguments
import Foundation
import Glibc
import Testing
import Wire

@testable import IeumClient
@testable import ieum

@Suite("What people see")
struct OutputTests {
    @Test(
        "nothing that a name holds steers a terminal",
        arguments: [
            ("phone", "phone"), ("거실 TV", "거실 TV"), ("a\u{1B}[31mb", "a\\u{1B}[31mb"),
            ("a\nb\r\t", "a\\u{A}b\\u{D}\\u{9}"),
            ("\u{9B}2J", "\\u{9B}2J"), ("\u{7F}\u{0}", "\\u{7F}\\u{0}"), ("a\u{202E}b", "a\\u{202E}b"),
            ("\u{2028}\u{2066}\u{FEFF}", "\\u{2028}\\u{2066}\\u{FEFF}"), ("👩‍👩‍👧", "👩‍👩‍👧"), ("e\u{301}", "e\u{301}"), ("", ""),
        ])
    func safe(text: String, shown: String) {
        #expect(text.terminalSafe == shown)
    }

    @Test(
        "the width of a text is that of a terminal",
        arguments: [
            ("", 0), ("abc", 3), ("사람", 4), ("ｱ", 1), ("Ａ", 2), ("é", 1), ("e\u{301}", 1), ("👩‍👩‍👧", 2), ("❤️", 2),
            ("日本a", 5),
            ("🟩🟨⬛", 6), ("\u{1112}\u{1161}\u{11AB}", 2),
        ])
    func width(text: String, columns: Int) {
        #expect(text.terminalWidth == columns)
    }

    @Test("a table's columns stand under each other, whatever is in them")
    func table() {
        var table = Table([.left("DEVICE"), .right("SIZE"), .left("NOTE")])
        table.add(["거실", "1.1 kB", "a"])
        table.add(["p\u{1B}", "12 B", ""])
        #expect(table.lines == ["DEVICE     SIZE  NOTE", "거실     1.1 kB  a", "p\\u{1B}    12 B"])
    }

    @Test("every line is safe, whatever it is made of; lines of talk stay lines")
    func lines() throws {
        let folder = try TemporaryFolder()
        let data = open(folder.path + "/data", O_RDWR | O_CREAT, 0o600)
        let talk = open(folder.path + "/talk", O_RDWR | O_CREAT, 0o600)
        let output = Output(environment: [:], data: data, talk: talk)
        try output.line("a\u{1B}[2J\u{202E}b\n")
        try output.boldLine("c\u{9B}")
        output.talk("d\u{7}\ne\u{2066}")
        output.talk(.object([("x", .string("\u{202E}\u{1B}"))]))
        #expect(
            try String(contentsOfFile: folder.path + "/data", encoding: .utf8)
                == "a\\u{1B}[2J\\u{202E}b\\u{A}\nc\\u{9B}\n")
        #expect(
            try String(contentsOfFile: folder.path + "/talk", encoding: .utf8)
                == "d\\u{7}\ne\\u{2066}\n{\"x\":\"\\u202e\\u001b\"}\n")
        close(data)
        close(talk)
    }

    @Test(
        "a state shown on a terminal says the same, and steers nothing",
        arguments: [
            ("{\"a\":\"\u{202E}b\u{9B}2J\u{7F}\"}", "{\"a\":\"\\u202eb\\u009b2J\\u007f\"}"), ("[1,\n\t2]", "[1,\n\t2]"),
            ("[1,\r\n2]\r", "[1, \n2] "),
            ("\"\u{E0001}\"", "\"\\udb40\\udc01\""), ("\"사람 👩‍👩‍👧\"", "\"사람 👩‍👩‍👧\""),
        ])
    func shownState(text: String, shown: String) throws {
        let safe = JSONText.terminalSafe(Array(text.utf8))
        #expect(String(decoding: safe, as: UTF8.self) == shown)
        func value(_ bytes: some Sequence<UInt8>) throws -> NSObject? {
            try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed) as? NSObject
        }
        #expect(try value(safe) == value(text.utf8))
    }

    @Test("JSON keeps the order of its keys, escapes texts, and leaves a state as it is")
    func json() {
        let value = JSONText.object([
            ("b", .text("\"\u{1B}\n")), ("a", .array([.integer(-1), .null, .boolean(true), .decimal(0.5)])),
            ("state", .state(Array("{ \"x\" : 1e2 }".utf8))), ("no", .state(nil)), ("nan", .decimal(.nan)),
        ])
        let text = String(decoding: value.line, as: UTF8.self)
        #expect(
            text
                == "{\"b\":\"\\\"\\u001b\\n\",\"a\":[-1,null,true,0.5],\"state\":{ \"x\" : 1e2 },\"no\":null,\"nan\":null}\n"
        )
    }

    @Test(
        "sizes and durations are rounded for people",
        arguments: [
            (0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (1_073, "1.1 kB"), (999_999, "1000.0 kB"),
            (2_540_000, "2.5 MB"),
        ])
    func sizes(bytes: Int, text: String) {
        #expect(bytes.sizeText == text)
    }

    @Test(
        "durations are rounded for people",
        arguments: [
            (Duration.microseconds(840), "0.8 ms"), (.milliseconds(12), "12 ms"), (.milliseconds(2_500), "2.5 s"),
            (.seconds(5), "5 s"), (.seconds(300), "5 minutes"), (.seconds(10_800), "3 hours"),
            (.seconds(200_000), "2 days"),
        ])
    func durations(duration: Duration, text: String) {
        #expect(duration.readableText == text)
    }
}

@Suite("The state to push")
struct StateFileTests {
    @Test(
        "is one line: breaks around it go, those between its parts become blanks, all else stays",
        arguments: [
            ("{}", "{}"), ("{}\n", "{}"), ("\n\n {\"a\":1}\r\n\n", "{\"a\":1}"),
            ("{\n  \"a\": [\r\n1]\n}\n", "{   \"a\": [  1] }"),
            ("1", "1"), ("\"a\\\"\"\n", "\"a\\\"\""), ("{\"a\":\"\\\\\"\n}", "{\"a\":\"\\\\\" }"), ("{} \t", "{} \t"),
        ])
    func oneLine(text: String, line: String) throws {
        #expect(try StateFile.oneLine(Array(text.utf8)) == Array(line.utf8))
    }

    @Test(
        "is refused when it is empty or has a line break inside a string",
        arguments: ["", "\n \r\n", "\"a\nb\"", "{\"a\\\nb\":1}"])
    func refuses(text: String) {
        #expect(throws: UsageError.self) { try StateFile.oneLine(Array(text.utf8)) }
    }

    @Test("comes without the byte order mark that an editor put before it")
    func byteOrderMark() throws {
        #expect(try StateFile.oneLine([0xEF, 0xBB, 0xBF] + Array("\n{}\n".utf8)) == Array("{}".utf8))
        #expect(throws: UsageError.self) { try StateFile.oneLine([0xEF, 0xBB, 0xBF]) }
        #expect(throws: UsageError.self) { try StateFile.oneLine([0xEF, 0xBB, 0xBF, 0x0A]) }
    }

    @Test("comes as it was from any bytes that hold no line break", arguments: [UInt64(11), 12])
    func random(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            var bytes = (0..<Int.random(in: 1...40, using: &random)).map { _ in
                UInt8.random(in: .min ... .max, using: &random)
            }
            bytes.removeAll { $0 == 0x0A || $0 == 0x0D }
            bytes.insert(0x7B, at: 0)
            #expect(try StateFile.oneLine(bytes) == bytes, "seed \(seed)")
        }
    }
}

@Suite("A folder of states")
struct StateFolderTests {
    @Test("no id leaves the folder, hides its file, or shares it with another id")
    func names() {
        let ids = [
            "today", "..", ".", "../../etc/passwd", "a/b", "a%2Fb", "%", ".hidden", "오늘",
            String(repeating: "/", count: 128),
            String(repeating: "/", count: 127) + "a", String(repeating: "한", count: 42),
        ]
        let names = ids.map(StateFolder.fileName)
        #expect(Set(names).count == ids.count)
        for name in names {
            #expect(!name.contains("/") && !name.hasPrefix(".") && name.utf8.count <= 255)
        }
        #expect(StateFolder.fileName(for: "today") == "today.json")
    }

    @Test("holds each game's bytes, and no file of a deleted game")
    func mirrors() throws {
        let temporary = try TemporaryFolder()
        let folder = try StateFolder(path: temporary.path + "/games")
        let key = try GameKey(collection: "handle.game", id: "a/b")
        let header = GameHeader(revision: 1, saved: .now, stamp: .now, device: Said.token.device, schema: 0)
        let file = temporary.path + "/games/handle.game/a%2Fb.json"
        for state in ["{\"a\":1}", "{}"] {
            try folder.take(GameVersion(game: key, header: header, state: Array(state.utf8)))
            #expect(try String(contentsOfFile: file, encoding: .utf8) == state)
        }
        for _ in 0..<2 {
            try folder.take(GameVersion(game: key, header: header, state: nil))
            #expect(!FileManager.default.fileExists(atPath: file))
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.path + "/games/handle.game") == [])
    }
}

@Suite("The program")
struct ProgramTests {
    /// Runs a call with its output caught.
    private func run(_ arguments: String..., environment: [String: String] = ["IEUM_HOME": "/nonexistent/home"]) throws
        -> (
            code: ExitCode, data: String, talk: String
        )
    {
        let folder = try TemporaryFolder()
        let data = open(folder.path + "/data", O_RDWR | O_CREAT, 0o600)
        let talk = open(folder.path + "/talk", O_RDWR | O_CREAT, 0o600)
        let code = Program(
            environment: environment, output: Output(environment: environment, data: data, talk: talk)
        ).run(arguments)
        close(data)
        close(talk)
        return (
            code, try String(contentsOfFile: folder.path + "/data", encoding: .utf8),
            try String(contentsOfFile: folder.path + "/talk", encoding: .utf8)
        )
    }

    @Test("help names every command, and every command's help its options and exit codes")
    func help() throws {
        let overview = try run("help")
        #expect(overview.code == .done && overview.talk.isEmpty)
        for command in Program.commands {
            #expect(overview.data.contains("\n  \(command.word) "))
            for call in [["help", command.word], [command.word, "--help"], [command.word, "x", "-h"]] {
                let help = try call.count == 2 ? run(call[0], call[1]) : run(call[0], call[1], call[2])
                #expect(help.code == .done && help.talk.isEmpty)
                #expect(help.data.contains("Usage: ieum \(command.word)") && help.data.contains("Exit codes: 0 done"))
                for option in command.spec.options { #expect(help.data.contains("--\(option.name)")) }
            }
            // A game on a screen prints nothing for programs.
            guard command.word != "play" else { continue }
            #expect(command.spec.options.contains { $0.name == "json" })
            #expect(command.help.contains("--json prints"))
        }
    }

    @Test("every example in the help is a call that the program takes")
    func examples() throws {
        for command in Program.commands {
            #expect(!command.spec.examples.isEmpty)
            for example in command.spec.examples {
                let words = example.split(separator: " ").prefix { $0 != "&&" && $0 != ">" }.map(String.init)
                #expect(words.prefix(2) == ["ieum", command.word])
                _ = try ParsedArguments(words.dropFirst(2), of: command.spec)
            }
        }
    }

    @Test("a call that is wrong ends with 2, prints nothing on stdout, and says what to type")
    func usage() throws {
        let calls: [(call: (code: ExitCode, data: String, talk: String), text: String)] = try [
            (run(), "Usage: ieum <command>"), (run("psuh"), "Did you mean ieum push?"), (run("\u{1B}[2J"), "ieum help"),
            (run("help", "gte"), "Did you mean ieum get?"), (run("push", "a", "b"), "--file is missing"),
            (run("push", "a", "b", "--fiel", "x"), "did you mean --file?"), (run("get", "a"), "<id> is missing"),
            (run("get", "1", "b"), "a collection's name"), (run("get", "a", "b c"), "white space"),
            (run("push", "a", "b", "--file", "/nonexistent/file"), "No such file"),
            (run("push", "a", "b", "--file", "/dev/null"), "the state is empty"),
            (run("push", "a", "b", "--file", "/"), "cannot be read"),
            (run("push", "a", "b", "--file", "-", "--base", "x"), "--base takes"),
            (run("push", "a", "b", "--file", "-", "--saved", "noon"), "--saved takes a time"),
            (run("link", "1234", "--server", "a:1", "--device", "b"), "this is no code"),
            (run("register", "--server", "a:b", "--device", "b"), "--server takes HOST:PORT"),
            (run("register", "--server", "müller.de", "--device", "b"), "with the name in ASCII (xn--…), not"),
            (run("register", "--server", "a:1", "--device", "b\u{1B}[2J"), "--device takes a name"),
            (run("register", "--server", "a:1"), "--device is missing"),
            (run("watch", "--timeout", "soon"), "--timeout takes"),
            (run("get", "a", "b", "--revision", "0"), "--revision takes"),
            (run("history", "a", "b", "--before", "0"), "--before takes"),
            (run("status", environment: [:]), "export IEUM_HOME="),
        ]
        for (call, text) in calls {
            #expect(call.code == .usage, "\(call.talk)")
            #expect(call.data.isEmpty)
            #expect(call.talk.contains(text), "\(call.talk)")
            #expect(!call.talk.contains("\u{1B}"))
        }
    }

    @Test("without an identity every command that needs one ends with 5 and says how to get one")
    func notSignedIn() throws {
        for call in try [
            run("status"), run("pair"), run("pull"), run("watch"), run("get", "a", "b"), run("history", "a", "b"),
            run("ping"),
            run("delete", "a", "b"), run("push", "a", "b", "--file", "/proc/self/comm"),
        ] {
            #expect(call.code == .notSignedIn)
            #expect(call.talk.contains("ieum register --server"))
        }
    }

    @Test("with --json an error is one object on stderr")
    func jsonErrors() throws {
        struct Text: Decodable {
            struct Inner: Decodable {
                var code: String
                var message: String
                var hint: String?
                var exit: Int
            }
            var error: Inner
        }
        let call = try run("get", "a", "b", "--json")
        let text = try JSONDecoder().decode(Text.self, from: Data(call.talk.utf8))
        #expect(text.error.code == "no-identity" && text.error.exit == 5)
        #expect(call.data.isEmpty)
    }

    @Test(
        "each refusal of the server has its exit code and keeps its name",
        arguments: [
            (WireError.Code.noSuchGame, ExitCode.noSuchGame), (.noSuchVersion, .noSuchGame),
            (.loginFailed, .notSignedIn),
            (.deviceRevoked, .notSignedIn), (.notSignedIn, .notSignedIn), (.busy, .unreachable),
            (.unavailable, .unreachable), (.rateLimited, .unreachable),
            (.shuttingDown, .unreachable), (.tooManyConnections, .unreachable), (.codeInvalid, .refused),
            (.tooManyTries, .refused), (.invalidJSON, .refused), (.stateTooLarge, .refused), (.baseMismatch, .refused),
            (.savedReused, .refused), (.cursorAhead, .refused), (.registrationClosed, .refused),
            (.inviteRequired, .refused),
            (.inviteInvalid, .refused), (.noSuchDevice, .refused),
            (.internalError, .refused),
        ])
    func refusals(code: WireError.Code, exitCode: ExitCode) {
        let failure = Failure(ClientError.server(WireError(code, "no \u{1B}[2J", retryAfter: .seconds(3), hint: "Do.")))
        #expect(failure.exitCode == exitCode)
        #expect(failure.code == code.rawValue)
        #expect(failure.lines.first == "ieum: no \\u{1B}[2J (\(code))")
        #expect(failure.lines.last?.contains("3 s") == true)
        #expect(failure.hint != nil)
        // The hints are this program's commands, not the protocol's.
        for verb in Verb.allCases where verb != .get { #expect(failure.hint?.contains(verb.rawValue + " ") != true) }
    }

    @Test("a reader that leaves ends the program quietly; a full disk does not")
    func brokenOutput() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        close(ends[0])
        signal(SIGPIPE, SIG_IGN)
        let folder = try TemporaryFolder()
        let talk = open(folder.path + "/talk", O_RDWR | O_CREAT, 0o600)
        let full = open("/dev/full", O_WRONLY)
        let codes = [ends[1], full].map { descriptor in
            Program(environment: [:], output: Output(environment: [:], data: descriptor, talk: talk)).run(["version"])
        }
        _ = Program(environment: [:], output: Output(environment: [:], data: full, talk: talk)).run(["help"])
        for descriptor in [ends[1], talk, full] { close(descriptor) }
        #expect(codes == [.brokenPipe, .refused])
        #expect(
            try String(contentsOfFile: folder.path + "/talk", encoding: .utf8)
                == String(repeating: "ieum: stdout cannot be written: No space left on device\n", count: 2))
    }
}
