import Testing

@testable import Wire

@Suite("Round trips")
struct RoundTripTests {
    @Test("a random command is read back as it was printed")
    func commands() throws {
        var random = SeededRandom.fresh()
        let parser = CommandParser()
        for _ in 0..<5_000 {
            let command = try random.command()
            var line: [UInt8] = []
            command.print(into: &line)
            #expect(line.filter { $0 == UInt8(ascii: "\n") }.count == 1)
            #expect(line.removeLast() == UInt8(ascii: "\n"))
            #expect(try parser.parse(line.span) == command, "\(String(decoding: line, as: UTF8.self))")
            line.append(UInt8(ascii: "\r"))
            #expect(try parser.parse(line.span) == command)
        }
    }

    @Test("a random reply is one line, and is read back as it was printed")
    func replies() throws {
        var random = SeededRandom.fresh()
        for _ in 0..<5_000 {
            let reply = try random.reply()
            var line: [UInt8] = []
            reply.print(into: &line)
            #expect(line.filter { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }.count == 1)
            #expect(line.removeLast() == UInt8(ascii: "\n"))
            let parsed = try #require(try ServerLine.parse(line.span))
            #expect(try parsed.asReply(like: reply) == reply, "\(String(decoding: line, as: UTF8.self))")
        }
    }

    @Test("options and notices of a newer server are passed over")
    func newerServer() throws {
        func parse(_ text: String) throws -> ServerLine? { try ServerLine.parse(Array(text.utf8).span) }
        #expect(try parse("* CHANGED revision=43 colour=\"deep \\u0062lue\"") == .changed(revision: 43))
        #expect(try parse("* CHANGED colour=blue revision=43") == .changed(revision: 43))
        #expect(try parse("* WEATHER rain=true") == .unrecognized("WEATHER"))
        #expect(try parse("TROPHY x y=z") == .unrecognized("TROPHY"))
        #expect(try parse("END cursor=4 more=false tempo=allegro") == .end(PageEnd(cursor: 4, more: false)))
        #expect(try parse("") == nil)
        #expect(try parse("  \t\r") == nil)
        #expect(
            try parse("ERR new-code where=there retry-after=0.25 \"what\"")
                == .error(
                    WireError(
                        WireError.Code(rawValue: "new-code"), "what", fields: [.init("where", "there")],
                        retryAfter: .milliseconds(250))))
        #expect(try parse("#") == .help(""))
        #expect(try parse("#  two") == .help(" two"))
    }

    @Test(
        "what a server must not say is a malformed line",
        arguments: [
            "* CHANGED", "* CHANGED revision=-1", "* CHANGED revision=9223372036854775808", "*", "ERR", "IEUM",
            "IEUM one server=x", "IEUM 1 server=x", "GAME a", "GAME a b revision=1", "GAME a= b revision=1",
            "VERSION a b", "DEVICE", "DEVICE x name=a created=1970-01-01T00:00:00Z",
            "DEVICE 3f2504e0-4f89-41d3-9a0c-0305e82c3301 name=a",
            "DEVICE 3f2504e0-4f89-41d3-9a0c-0305e82c3301 name=a created=1970-01-01T00:00:00Z clock-offset=-0",
            "END after=x", "END revision=-1",
            "END more=perhaps", "END cursor=x", "ERR busy retry-after=x \"m\"", "ERR busy retry-after=1.0000 \"m\"",
            "ERR busy \"m", "ERR busy m", "ERR busy \"\\u0000\"", "* BYE \"m\"", "OK a=\"", "OK a=\"b\"c",
            "OK a=\"\\ud800\"",
            "GONE a b revision=1 saved=1970-01-01T00:00:00Z stamp=1970-01-01T00:00:00Z "
                + "device=3f2504e0-4f89-41d3-9a0c-0305e82c3301 schema=0 {}",
            "GAME a b revision=1 saved=1970-01-01T00:00:00Z stamp=1970-01-01T00:00:00Z "
                + "device=3f2504e0-4f89-41d3-9a0c-0305e82c3301 schema=0",
        ])
    func malformedLines(text: String) {
        #expect(throws: MalformedLine.self) { try ServerLine.parse(Array(text.utf8).span) }
    }

    @Test("a line break in a state becomes a blank and ends no line")
    func lineBreaksInStates() throws {
        let push = Push(game: try GameKey(collection: "a", id: "b"), state: Array("{\n\t\"a\":\r\n1}".utf8))
        var line: [UInt8] = []
        Command.push(push).print(into: &line)
        #expect(String(decoding: line, as: UTF8.self) == "PUSH a b { \t\"a\":  1}\n")
    }

    @Test("a retry-after is never printed shorter than it is")
    func retryAfterRoundsUp() {
        for (duration, text) in [
            (Duration.zero, "0"), (.seconds(3), "3"), (.milliseconds(500), "0.5"), (.microseconds(1), "0.001"),
            (.nanoseconds(1_999_999_999), "2"), (.milliseconds(-5), "0"), (.milliseconds(1_230), "1.23"),
        ] {
            #expect(WireError(.busy, "m", retryAfter: duration).description == "busy retry-after=\(text) \"m\"")
        }
    }
}

extension ServerLine {
    /// The reply that this line is, of the kind that `expected` has.
    fileprivate func asReply(like expected: Reply) throws(MalformedLine) -> Reply {
        switch (self, expected) {
        case (.greeting(let greeting), _): .greeting(greeting)
        case (.ok(let fields), .hello): .hello(try Greeting(hello: fields))
        case (.ok(let fields), .signIn): .signIn(try SignIn(fields))
        case (.ok(let fields), .pairing): .pairing(try PairingOffer(fields))
        case (.ok(let fields), .rotated): .rotated(try TokenOffer(fields))
        case (.ok(let fields), .receipt): .receipt(try PushReceipt(fields))
        case (.ok(let fields), .watching): .watching(revision: try fields.revision("revision"))
        case (.ok(let fields), .imported): .imported(revision: try fields.revision("revision"))
        case (.ok(let fields), .importBegun): .importBegun(try fields.uuid("import"))
        case (.ok(let fields), .time): .time(try fields.time("time"))
        case (.ok(let fields), .done) where fields.options.isEmpty && fields.tail == nil: .done
        case (.game(let version), _): .game(version)
        case (.version(let entry), _): .version(entry)
        case (.device(let entry), _): .device(entry)
        case (.help(let text), _): .help(text)
        case (.end(let end), _): .end(end)
        case (.error(let error), _): .error(error)
        case (.changed(let revision), _): .changed(revision: revision)
        case (.bye(let reason), _): .bye(reason)
        default: throw MalformedLine("\(self) is no \(expected)")
        }
    }
}
