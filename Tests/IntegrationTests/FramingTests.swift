import Foundation
import TestSupport
import Testing

/// One daemon for the tests that do it no harm.
private let sharedDaemon = Result { try DaemonProcess() }

@Suite("framing on a real connection")
struct FramingTests {
    let daemon: DaemonProcess

    init() throws { daemon = try sharedDaemon.get() }

    private static let maxLine = 1_048_576

    @Test("a transcript cut anywhere gives the same replies")
    func anySplit() throws {
        var random = SeededRandom(for: "FramingTests.anySplit")
        let commands =
            "PING\r\nHELLO client=t\nNONSENSE\n\nPUSH g x {\"n\":1}\nHELP PUSH\nPULL since=0\n \nLOGIN x\nPUSH g x {\nPING\n"
        let volatile = #/time=\S+/#
        func replies(_ pieces: [[UInt8]]) throws -> [String] {
            let client = try RawClient(port: daemon.port)
            for piece in pieces { try client.send(piece) }
            client.finishSending()
            var lines: [String] = []
            while let line = try client.line() { lines.append(line.replacing(volatile, with: "time=")) }
            return lines
        }
        let bytes = Array(commands.utf8)
        let whole = try replies([bytes])
        #expect(whole.count > 10)
        #expect(try replies(bytes.map { [$0] }) == whole)
        for _ in 0..<20 {
            var pieces: [[UInt8]] = []
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = Int.random(in: 1...min(40, rest.count), using: &random)
                pieces.append(Array(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            #expect(try replies(pieces) == whole)
        }
    }

    @Test("a line of the limit is taken, a longer one is eaten and answered, and the next command works")
    func lineLimits() throws {
        // Before signing in a line has less room than after it.
        let clients = [(try RawClient(port: daemon.port), 4_096), (try newPlayer(daemon).client, Self.maxLine)]
        for (client, most) in clients {
            for length in [most - 1, most] {
                try client.send([UInt8](repeating: 0x41, count: length) + [0x0A])
                #expect(try client.reply().last?.hasPrefix("ERR unknown-command ") == true)
            }
            try client.send([UInt8](repeating: 0x41, count: most + 1) + [0x0A])
            #expect(try client.reply().last?.hasPrefix("ERR line-too-long limit=\(most) ") == true)
            #expect(try client.ask("PING") == "OK")
        }
    }

    @Test("a line of 100 MB costs the daemon no memory")
    func endlessLine() throws {
        let client = try RawClient(port: daemon.port)
        #expect(try client.ask("PING") == "OK")
        let before = try residentBytes(daemon.processID)
        let chunk = [UInt8](repeating: 0x41, count: 1 << 20)
        for _ in 0..<100 { try client.send(chunk) }
        try client.send([0x0A])
        #expect(try client.reply().last?.hasPrefix("ERR line-too-long ") == true)
        #expect(try client.ask("PING") == "OK")
        #expect(try residentBytes(daemon.processID) - before < 16 << 20)
    }

    @Test("NUL, control characters and invalid UTF-8 get their code, and the next command works")
    func badBytes() throws {
        let client = try RawClient(port: daemon.port)
        let cases: [([UInt8], String)] = [
            ([0x50, 0x00, 0x49], "ERR invalid-character "), ([0x50, 0x07], "ERR invalid-character "),
            ([0x50, 0xC3, 0x28], "ERR invalid-utf8 "), ([0xED, 0xA0, 0x80], "ERR invalid-utf8 "),
            ([0xF4, 0x90, 0x80, 0x80], "ERR invalid-utf8 "), ([0xC0, 0xAF], "ERR invalid-utf8 "),
        ]
        for (bytes, code) in cases {
            try client.send(bytes + [0x0A])
            #expect(try client.reply().last?.hasPrefix(code) == true)
            #expect(try client.ask("PING") == "OK")
        }
    }

    @Test("half a line and then the end is not carried out")
    func halfALine() throws {
        let (client, token) = try newPlayer(daemon)
        try client.send(Array("PUSH g x {\"n\":1}\nPUSH g x {\"n\":2}".utf8))
        client.finishSending()
        #expect(try client.line()?.hasPrefix("OK outcome=created ") == true)
        #expect(try client.line() == nil)
        let again = try RawClient(port: daemon.port)
        #expect(fields(try again.ask("LOGIN \(token)"))["revision"] == "1")
    }

    @Test("10,000 pipelined commands are answered in order")
    func pipelined() throws {
        let (client, _) = try newPlayer(daemon)
        var random = SeededRandom(for: "FramingTests.pipelined")
        var expected: [String] = []
        var bytes: [UInt8] = []
        for number in 0..<10_000 {
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<9:
                bytes += Array("PUSH g game\(number) {\"n\":\(number)}\n".utf8)
                expected.append("OK outcome=created")
            case 9..<13:
                bytes += Array("PING\n".utf8)
                expected.append("OK")
            case 13..<16:
                bytes += Array("PUSH g game\(number) {\"n\":\n".utf8)
                expected.append("ERR invalid-json")
            case 16..<18:
                bytes += Array("GET g nowhere\(number)\n".utf8)
                expected.append("ERR no-such-game")
            default:
                bytes += Array("PULL since=0 limit=1\n".utf8)
                expected.append("END")
            }
        }
        let writer = Workers()
        writer.start { [bytes] in try client.sendFromAnotherThread(bytes) }
        var revision = 0
        for (number, start) in expected.enumerated() {
            let last = try client.reply(timeout: 60).last ?? ""
            #expect(last.hasPrefix(start), "reply \(number)")
            if start == "OK outcome=created" {
                revision += 1
                #expect(fields(last)["revision"] == "\(revision)")
            }
        }
        try writer.join()
    }

    @Test("a state comes back byte for byte: spacing, doubled keys, great numbers, Hangul, escapes")
    func bytesAreOpaque() throws {
        let (client, _) = try newPlayer(daemon)
        let states = [
            "{ \"a\" :1 ,\"a\": 2.50e+10 }", "[9007199254740993,1E5,-0.0]", "\"\\ud55c\\uae00 한글 \\u0001\"", "true",
            "null", "[]", "{\"k\":\"" + String(repeating: "가", count: 300_000) + "\"}",
        ]
        for (number, state) in states.enumerated() {
            #expect(try client.ask("PUSH g s\(number) \(state)").hasPrefix("OK outcome=created "))
            try client.send("GET g s\(number)")
            #expect(try client.reply().first?.hasSuffix(" " + state) == true)
        }
    }

    @Test("states that PostgreSQL could not query are refused with their place, and disturb no other push")
    func invalidStates() throws {
        let (client, _) = try newPlayer(daemon)
        let bad = [
            "{\"answer\":", "{\"a\":\"\\u0000\"}", "[\"\\ud800\"]", "[\"\\udc00x\"]", "nul", "{\"a\":1}}", "[1e999999]",
        ]
        for state in bad {
            try client.send(
                "PUSH g before\(state.count) {\"n\":1}\nPUSH g bad \(state)\nPUSH g after\(state.count) {\"n\":1}")
            #expect(try client.reply().last?.hasPrefix("OK outcome=") == true)
            let answer = try client.reply().last ?? ""
            #expect(answer.hasPrefix("ERR invalid-json offset="), "\(state): \(answer)")
            #expect(try client.reply().last?.hasPrefix("OK outcome=") == true)
        }
        let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        #expect(try client.ask("PUSH g deep \(deep)").hasPrefix("ERR json-too-deep "))
        #expect(try client.ask("GET g deep").hasPrefix("ERR no-such-game "))
    }
}

extension RawClient {
    /// Sends while the test reads on another thread: a socket is safe for one writer and one reader.
    nonisolated func sendFromAnotherThread(_ bytes: [UInt8]) throws { try send(bytes) }
}

/// The resident memory of a process, from /proc; nothing with a sanitizer in it, whose own memory it would be.
func residentBytes(_ processID: pid_t) throws -> Int {
    if Sanitizer.isActive { return 0 }
    let text = try String(contentsOfFile: "/proc/\(processID)/statm", encoding: .utf8)
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
}
