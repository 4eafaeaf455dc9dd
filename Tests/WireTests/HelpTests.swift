import Testing

@testable import Wire

@Suite("Help")
struct HelpTests {
    private func lines(_ command: String) -> [String] {
        var harness = SessionHarness()
        harness.send(command)
        return harness.lines()
    }

    @Test("lists every command, and the first try it proposes works")
    func overview() {
        let lines = lines("HELP")
        for verb in Verb.allCases {
            #expect(lines.contains { $0.hasPrefix("#   \(verb.rawValue) ") && $0.hasSuffix(verb.summary) })
        }
        #expect(lines.last == "END")
        #expect(lines.dropLast().allSatisfy { $0.hasPrefix("# ") && $0.utf8.count <= 120 })
    }

    @Test("tells for each command how it is written and an example that the parser takes", arguments: Verb.allCases)
    func verbs(verb: Verb) throws {
        for topic in [verb.rawValue, verb.rawValue.lowercased()] {
            let lines = lines("HELP \(topic)")
            #expect(lines.first == "# \(verb.rawValue): \(verb.summary)")
            #expect(lines.contains("# Usage:   \(verb.usage)"))
            #expect(lines.contains("# Example: \(verb.example)"))
            #expect(lines.last == "END")
            #expect(lines.dropLast().allSatisfy { $0.hasPrefix("# ") && $0.utf8.count <= 120 })
        }
        guard verb != .login else { return }
        let command = try #require(try CommandParser().parse(Array(verb.example.utf8).span))
        #expect(command.verb == verb)
    }

    @Test("on something that is no command says what may have been meant")
    func unknownTopic() {
        #expect(lines("HELP psuh").map { $0.prefix(36) } == ["ERR unknown-command suggestion=PUSH "])
    }
}
