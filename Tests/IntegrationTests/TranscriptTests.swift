import Foundation
import TestSupport
import Testing

/// One daemon for all transcripts: each begins with players of its own.
private let sharedDaemon = Result { try DaemonProcess() }

@Suite("the transcripts of Documentation/protocol.md against a real daemon")
struct TranscriptTests {
    private static func transcripts() throws -> [Transcript] {
        let document = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Documentation/protocol.md")
        return try Transcript.all(in: String(contentsOf: document, encoding: .utf8))
    }

    @Test("hold, line for line, and nothing is said beyond them", arguments: try transcripts())
    func replays(transcript: Transcript) throws {
        let daemon = try sharedDaemon.get()
        var connections: [Int: RawClient] = [:]
        var values: [String: String] = [:]
        try #require(!transcript.entries.isEmpty)
        for entry in transcript.entries {
            let client = try connections[entry.connection] ?? RawClient(port: daemon.port, readsGreeting: false)
            connections[entry.connection] = client
            let pattern = LinePattern(entry.text)
            if entry.isFromClient {
                try client.send(pattern.filled(with: values))
            } else {
                let line = try client.line() ?? "(closed)"
                let matched = pattern.match(line, values)
                // What is left cannot be understood after a line that differs.
                values = try #require(matched, "expected: \(pattern.filled(with: values))\ncame: \(line)")
            }
        }
        for client in connections.values {
            client.finishSending()
            #expect(try client.line() == nil)
        }
    }

    @Test("there are as many as the document marks")
    func count() throws { #expect(try Self.transcripts().count >= 17) }

    @Test("a pattern's names hold, take the shortest run without blanks, and all else must be equal")
    func patterns() throws {
        let pattern = LinePattern("OK a=<x> b=<y> <*> c=<x>")
        #expect(pattern.match("OK a=1 b=22 z z c=1", [:]) == ["x": "1", "y": "22"])
        #expect(pattern.match("OK a=1 b=22 z c=2", [:]) == nil)
        #expect(pattern.match("OK a=1 b=22 z c=1", ["y": "3"]) == nil)
        #expect(pattern.match("OK a=1 b=22 c=1", [:]) == nil)
        #expect(pattern.match("OK a=1 b= z c=1", [:]) == nil)
        #expect(LinePattern("a<b").match("a<b", [:]) == [:])
        #expect(LinePattern("<x>").match("two words", [:]) == nil)
        #expect(LinePattern("LOGIN <t> <u>").filled(with: ["t": "1"]) == "LOGIN 1 <u>")
    }
}
