import Synchronization
import Testing

@testable import SyncServer

@Suite("the log")
struct LogTests {
    private final class Written: Sendable {
        let text = Mutex("")
    }

    /// How a value stands in a line.
    private func shown(_ value: String) throws -> String {
        let written = Written()
        let log = Log(level: .info) { line in written.text.withLock { $0 += line } }
        log(.info, "event", ["value": value])
        let line = written.text.withLock { $0 }
        return String(line[try #require(line.firstRange(of: " value=")).upperBound...])
    }

    @Test(
        "shows nothing as it is that would steer a terminal, turn text around or begin another line",
        arguments: [
            ("a\u{1B}[31mb", #""a\u{1b}[31mb""#), ("a\u{9B}31mb", #""a\u{9b}31mb""#), ("a\u{202E}b", #""a\u{202e}b""#),
            ("\u{2066}", #""\u{2066}""#), ("a\u{2028}b", #""a\u{2028}b""#), ("a\nlevel=error", #""a\nlevel=error""#),
            ("a\rb", #""a\u{d}b""#), ("a b=\"c\\", #""a b=\"c\\""#), ("", #""""#), ("\u{FFFF}", #""\u{ffff}""#),
        ])
    func escapes(value: String, expected: String) throws {
        #expect(try shown(value) == expected)
    }

    @Test("leaves names of every script as they are", arguments: ["games/한들.pem", "é", "क्‍ष", "🟩", "a,b:c"])
    func names(value: String) throws {
        #expect(try shown(value) == value)
    }
}
