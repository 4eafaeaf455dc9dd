import Foundation
import Testing

@testable import Wire

@Suite("Reading commands")
struct CommandParserTests {
    private static let tokenText =
        "AAAAAAAAAAAAAAAAAAAAAA.AQAAAAAAAAAAAAAAAAAAAA.AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

    private func parse(_ line: String, limits: Limits = Limits()) throws(WireError) -> Command? {
        try CommandParser(limits: limits).parse(Array(line.utf8).span)
    }

    private static func key(_ collection: String = "handle.game", _ id: String = "today") -> GameKey {
        do {
            return try GameKey(collection: collection, id: id)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    private static func push(
        _ saved: String? = nil, _ base: Revision? = nil, _ schema: Int32 = 0, _ state: String?
    ) -> Command {
        .push(
            Push(
                game: key(), saved: saved.flatMap { Timestamp($0) }, base: base, schema: schema,
                state: state.map { Array($0.utf8) }))
    }

    private static let code = PairingCode("7K3M-Q9TD")
    private static let token = Token(tokenText)

    @Test("each command is read, with and without its options", arguments: goodLines())
    func reads(line: String, command: Command) throws {
        #expect(try parse(line) == command)
        #expect(try parse(line + "\r") == command)
        #expect(try parse(" \t" + line) == command)
    }

    private static func goodLines() -> [(String, Command)] {
        var lines: [(String, Command)] = [
            ("HELLO", .hello(client: nil)), ("hello", .hello(client: nil)), ("hElLo client=x", .hello(client: "x")),
            ("HELLO client=\"ieum/0.1 (linux)\"", .hello(client: "ieum/0.1 (linux)")),
            ("HELLO client=a=b", .hello(client: "a=b")), ("HELLO  \t client=x  ", .hello(client: "x")),
            ("REGISTER", .register(device: nil)), ("REGISTER device=iPad", .register(device: "iPad")),
            ("REGISTER device=\"my iPad\"", .register(device: "my iPad")),
            ("REGISTER device=\"\\ud83d\\ude00 \\\"q\\\" \\u0041\\/\"", .register(device: "😀 \"q\" A/")),
            ("REGISTER device=한글", .register(device: "한글")),
            (
                "REGISTER invite=7K3M-Q9TD-0V5R-ZX2C device=x",
                .register(device: "x", invite: InviteCode("7K3MQ9TD0V5RZX2C"))
            ),
            ("RENAME name=\"old phone\"", .rename(nil, name: "old phone")),
            (
                "rename 01020304-0506-0708-090a-0b0c0d0e0f10 name=x",
                .rename(DeviceID("01020304-0506-0708-090a-0b0c0d0e0f10"), name: "x")
            ),
            (
                "REVOKE 01020304-0506-0708-090A-0B0C0D0E0F10",
                .revoke(DeviceID(UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))))
            ), ("ROTATE", .rotate),
            ("REGISTER colour=blue device=x shape=\"a \\\" b\"", .register(device: "x")),
            ("REGISTER base=notanumber colour= colour=", .register(device: nil)),
            ("PAIR", .pair), ("PAIR now=true", .pair), ("UNWATCH", .unwatch), ("TIME", .time), ("PING", .ping),
            ("QUIT", .quit),
            ("HELP", .help(topic: nil)), ("HELP push", .help(topic: "push")),
            ("PULL", .pull(since: 0, limit: nil)), ("PULL since=40", .pull(since: 40, limit: nil)),
            ("PULL limit=5 since=9223372036854775807", .pull(since: .max, limit: 5)),
            ("PULL since=\"4\\u0030\"", .pull(since: 40, limit: nil)),
            ("PULL limit=2147483647", .pull(since: 0, limit: 2_147_483_647)),
            ("WATCH", .watch(since: 0)), ("WATCH since=42", .watch(since: 42)),
            ("GET handle.game today", .get(key(), revision: nil)),
            ("GET handle.game today revision=41", .get(key(), revision: 41)),
            ("get\thandle.game\ttoday\trevision=41", .get(key(), revision: 41)),
            ("HISTORY handle.game today", .history(key(), before: nil, limit: nil)),
            ("HISTORY handle.game today limit=1 before=7", .history(key(), before: 7, limit: 1)),
            ("PUSH handle.game today {}", push(nil, nil, 0, "{}")),
            ("push handle.game today {}", push(nil, nil, 0, "{}")),
            ("PUSH handle.game today   {\"a\": 1}", push(nil, nil, 0, "{\"a\": 1}")),
            ("PUSH handle.game today null", push(nil, nil, 0, "null")),
            ("PUSH handle.game today true", push(nil, nil, 0, "true")),
            ("PUSH handle.game today 5", push(nil, nil, 0, "5")),
            ("PUSH handle.game today \"a=b\"", push(nil, nil, 0, "\"a=b\"")),
            ("PUSH handle.game today base=0 []", push(nil, 0, 0, "[]")),
            (
                "PUSH handle.game today schema=3 base=40 x=y saved=2026-11-29T11:59:58.12Z {\"base\":\"base=1\"}",
                push("2026-11-29T11:59:58.120000Z", 40, 3, "{\"base\":\"base=1\"}")
            ),
            ("DELETE handle.game today", push(nil, nil, 0, nil)),
            ("DELETE handle.game today base=3 saved=1970-01-01T00:00:00Z", push("1970-01-01T00:00:00Z", 3, 0, nil)),
        ]
        if let token { lines.append(("LOGIN \(tokenText)", .login(token))) }
        if let code {
            lines.append(("LINK 7k3mq9td", .link(code: code, device: nil)))
            lines.append(("LINK 7K3M-Q9TD device=\"my phone\"", .link(code: code, device: "my phone")))
        }
        return lines
    }

    @Test("blanks behind a state belong to it, those before it do not")
    func blanksAroundState() throws {
        #expect(try parse("PUSH handle.game today \t {} \t ") == Self.push(nil, nil, 0, "{} \t "))
    }

    @Test("a line of blanks is nothing", arguments: ["", " ", "\t", " \t ", "\r", " \r"])
    func blankLines(line: String) throws {
        #expect(try parse(line) == nil)
    }

    struct Bad: Sendable, CustomTestStringConvertible {
        var line: String
        var code: WireError.Code
        var field: String?

        init(_ line: String, _ code: WireError.Code, _ field: String? = nil) {
            self.line = line
            self.code = code
            self.field = field
        }

        var testDescription: String { "\(line.prefix(60)): \(code)" }
    }

    @Test("each mistake gets its code and names its field", arguments: badLines)
    func refuses(bad: Bad) {
        let limits = Limits(maxLineBytes: 400, maxStateBytes: 100)
        let error = #expect(throws: WireError.self) { try parse(bad.line, limits: limits) }
        #expect(error?.code == bad.code)
        #expect(error?["field"] == bad.field)
        #expect(error?.isRetryable == false)
        #expect(error?.message.isEmpty == false)
    }

    private static let badLines: [Bad] = [
        Bad("HELO", .unknownCommand), Bad("PUSHX a b {}", .unknownCommand), Bad("{}", .unknownCommand),
        Bad("GET / HTTP/1.1", .invalidID, "collection"), Bad("한글", .unknownCommand), Bad("PUSH=", .unknownCommand),
        Bad(String(repeating: "X", count: 300), .unknownCommand),
        Bad("PUSH", .missingArgument, "collection"), Bad("PUSH a", .missingArgument, "id"),
        Bad("PUSH a {}", .missingArgument, "id"), Bad("PUSH {}", .missingArgument, "collection"),
        Bad("PUSH a base=1 {}", .missingArgument, "id"), Bad("PUSH a \"b\" {}", .missingArgument, "id"),
        Bad("DELETE a", .missingArgument, "id"), Bad("GET", .missingArgument, "collection"),
        Bad("GET a revision=1", .missingArgument, "id"), Bad("HISTORY a", .missingArgument, "id"),
        Bad("LOGIN", .missingArgument, "token"), Bad("LOGIN x=y", .missingArgument, "token"),
        Bad("LINK", .missingArgument, "code"), Bad("LINK device=x", .missingArgument, "code"),
        Bad("LOGIN secret", .invalidArgument, "token"), Bad("LOGIN \(tokenText)B", .invalidArgument, "token"),
        Bad("LINK 7K3M", .invalidArgument, "code"), Bad("LINK 7K3M Q9TD", .invalidArgument, "code"),
        Bad("PUSH a b", .missingState), Bad("PUSH a b base=1", .missingState),
        Bad("PUSH a b base=1  \t", .missingState),
        Bad("PUSH a b c", .invalidJSON), Bad("PUSH a b {} base=1", .invalidJSON),
        Bad("PUSH a b Base=1 {}", .invalidJSON),
        Bad("PUSH a b base =1 {}", .invalidJSON), Bad("PUSH a b {\"answer\":", .invalidJSON),
        Bad("PUSH a b {} {}", .invalidJSON),
        Bad("PUSH a b \"\(String(repeating: "x", count: 99))\"", .stateTooLarge),
        Bad("PUSH a b \(String(repeating: "[", count: 101))", .stateTooLarge),
        Bad("PING \(String(repeating: "x", count: 396))", .lineTooLong),
        Bad("PUSH 1a b {}", .invalidID, "collection"), Bad("PUSH a A=b {}", .invalidID, "id"),
        Bad("PUSH a b\u{3000}c {}", .invalidID, "id"), Bad("PUSH a \u{1112}\u{1161} {}", .invalidID, "id"),
        Bad("PUSH a b base=1 base=1 {}", .repeatedArgument, "base"),
        Bad("PULL since=1 limit=2 since=1", .repeatedArgument, "since"),
        Bad("HELLO client=a client=a", .repeatedArgument, "client"),
        Bad("PUSH a b base=-1 {}", .invalidArgument, "base"), Bad("PUSH a b base=+1 {}", .invalidArgument, "base"),
        Bad("PUSH a b base= {}", .invalidArgument, "base"), Bad("PUSH a b base=1.0 {}", .invalidArgument, "base"),
        Bad("PUSH a b base=01 {}", .invalidArgument, "base"), Bad("PUSH a b base=0x1 {}", .invalidArgument, "base"),
        Bad("PUSH a b base=9223372036854775808 {}", .invalidArgument, "base"),
        Bad("PUSH a b base=99999999999999999999999999 {}", .invalidArgument, "base"),
        Bad("PUSH a b base=\u{0661} {}", .invalidArgument, "base"),
        Bad("PUSH a b schema=2147483648 {}", .invalidArgument, "schema"),
        Bad("PUSH a b saved=yesterday {}", .invalidArgument, "saved"),
        Bad("PUSH a b saved=2026-02-29T00:00:00Z {}", .invalidArgument, "saved"),
        Bad("PUSH a b saved=2026-01-01T00:00:00.1234567Z {}", .invalidArgument, "saved"),
        Bad("PULL limit=0", .invalidArgument, "limit"), Bad("PULL limit=2147483648", .invalidArgument, "limit"),
        Bad("PULL since=x", .invalidArgument, "since"), Bad("GET a b revision=0", .invalidArgument, "revision"),
        Bad("HISTORY a b before=0", .invalidArgument, "before"),
        Bad("REGISTER device=", .invalidArgument, "device"), Bad("REGISTER device=\"\"", .invalidArgument, "device"),
        Bad("REGISTER device=\"a\\nb\"", .invalidArgument, "device"),
        Bad("REGISTER device=\"a\tb\"", .invalidArgument, "device"),
        Bad("REGISTER device=\"a\\u0000b\"", .invalidArgument, "device"),
        Bad("REGISTER device=\"\\ud800\"", .invalidArgument, "device"),
        Bad("REGISTER device=\"\\x\"", .invalidArgument, "device"),
        Bad("REGISTER device=a\u{85}b", .invalidArgument, "device"),
        Bad("REGISTER device=\"open", .invalidArgument, "device"),
        Bad("REGISTER device=\"open\\\"", .invalidArgument, "device"),
        Bad("REGISTER device=\"a\"b", .invalidArgument, "device"),
        Bad("REGISTER device=\"\\", .invalidArgument, "device"),
        Bad("REGISTER device=\(String(repeating: "한", count: 65))", .invalidArgument, "device"),
        Bad("PING pong", .unexpectedArgument), Bad("PING {}", .unexpectedArgument),
        Bad("TIME \"x\"", .unexpectedArgument),
        Bad("REGISTER my iPad", .unexpectedArgument), Bad("PULL 40", .unexpectedArgument),
        Bad("WATCH since=1 now", .unexpectedArgument),
        Bad("GET a b c", .unexpectedArgument), Bad("DELETE a b {}", .unexpectedArgument),
        Bad("QUIT now", .unexpectedArgument),
        Bad("HELP push pull", .unexpectedArgument), Bad("LOGIN \(tokenText) x", .unexpectedArgument),
        Bad("HELLO x", .unexpectedArgument), Bad("PAIR x", .unexpectedArgument), Bad("UNWATCH x", .unexpectedArgument),
        Bad("PI\0NG", .invalidCharacter), Bad("PING\r\r", .invalidCharacter), Bad("PING \u{1B}[2J", .invalidCharacter),
        Bad("PUSH a b \"\u{1}\"", .invalidCharacter), Bad("\0", .invalidCharacter),
    ]

    @Test("bytes that are not UTF-8 are refused anywhere in the line, in the state too")
    func invalidUTF8() {
        for (before, after) in [("", ""), ("PI", "NG"), ("PUSH a b \"", "\""), ("REGISTER device=\"", "\"")] {
            for bad in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82]] as [[UInt8]] {
                let line = Array(before.utf8) + bad + Array(after.utf8)
                let error = #expect(throws: WireError.self) { try CommandParser().parse(line.span) }
                #expect(error?.code == .invalidUTF8)
                #expect(error?["offset"] == String(before.utf8.count))
            }
        }
    }

    @Test("a broken state is named with the byte inside the state")
    func stateOffset() {
        let error = #expect(throws: WireError.self) { try parse("PUSH handle.game bad   {\"answer\":") }
        #expect(error?["offset"] == "10")
        #expect(error?.message == "the state ends inside an object")
        let deep = "PUSH a b " + String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        let tooDeep = #expect(throws: WireError.self) { try parse(deep) }
        #expect(tooDeep?.code == .jsonTooDeep)
        #expect(tooDeep?["offset"] == "512")
    }

    @Test("lines and states of limit - 1, limit and limit + 1 bytes")
    func boundaries() throws {
        let limits = Limits(maxLineBytes: 60, maxStateBytes: 40)
        for (size, isTaken) in [(39, true), (40, true), (41, false)] {
            let line = "PUSH a b \"" + String(repeating: "x", count: size - 2) + "\""
            if isTaken {
                guard case .push(let push)? = try parse(line, limits: limits) else {
                    Issue.record("no push")
                    continue
                }
                #expect(push.state?.count == size)
            } else {
                let error = #expect(throws: WireError.self) { try parse(line, limits: limits) }
                #expect(error?.code == .stateTooLarge)
                #expect(error?["limit"] == "40")
            }
        }
        for (size, isTaken) in [(59, true), (60, true), (61, false)] {
            let line = "PING" + String(repeating: " ", count: size - 4)
            if isTaken {
                #expect(try parse(line, limits: limits) == .ping)
                #expect(try parse(line + "\r", limits: limits) == .ping)
            } else {
                let error = #expect(throws: WireError.self) { try parse(line, limits: limits) }
                #expect(error?.code == .lineTooLong)
            }
        }
        let names = String(repeating: "한", count: 64)
        #expect(try parse("REGISTER device=\(names)") == .register(device: names))
    }

    @Test(
        "a mistyped verb gets a suggestion, nonsense gets none",
        arguments: [
            ("PSUH", "PUSH"), ("pul", "PULL"), ("LOGGIN", "LOGIN"), ("registr", "REGISTER"), ("WACTH", "WATCH"),
            ("XYZZY", nil), ("Q", nil), ("SELECT", nil),
        ] as [(String, String?)])
    func suggestions(word: String, suggestion: String?) {
        let error = #expect(throws: WireError.self) { try parse(word) }
        #expect(error?.code == .unknownCommand)
        #expect(error?["suggestion"] == suggestion)
    }

    @Test("a message shows little of what a peer sent, and nothing of it ends the line")
    func messagesAreShort() throws {
        let key = String(repeating: "k", count: 100_000)
        let lines = [
            String(repeating: "x", count: 1_000_000), "PING " + String(repeating: "\u{2028}", count: 100_000),
            "PUSH g a \(key)=\"", "PUSH g a \(key)=\"v\"w",
        ]
        for line in lines {
            let error = #expect(throws: WireError.self) { try parse(line) }
            var printed: [UInt8] = []
            try #require(error).print(into: &printed)
            #expect(printed.count < 600)
            #expect(!String(decoding: printed, as: UTF8.self).unicodeScalars.contains("\u{2028}"))
        }
    }
}
