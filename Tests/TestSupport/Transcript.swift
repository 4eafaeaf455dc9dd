/// A conversation written down in a document. Source: Documentation/protocol.md, "How to read the transcripts".
public struct Transcript: Sendable, CustomStringConvertible {
    /// A line of one of its connections.
    public struct Entry: Sendable {
        /// 1 for the first connection.
        public var connection: Int
        /// Whether the client sends it, and not the server.
        public var isFromClient: Bool
        /// The line, without its ending.
        public var text: String
    }

    /// The line of the document at which it begins.
    public var line: Int
    /// Its lines in their order.
    public var entries: [Entry] = []

    /// Where it stands.
    public var description: String { "line \(line)" }

    /// All transcripts of a document; throws for a line that is none.
    public static func all(in document: String) throws -> [Transcript] {
        var transcripts: [Transcript] = []
        var current: Transcript?
        for (index, line) in document.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if current == nil {
                if line == "```transcript" { current = Transcript(line: index + 1) }
            } else if line == "```" {
                if let finished = current { transcripts.append(finished) }
                current = nil
            } else {
                current?.entries.append(try entry(String(line)))
            }
        }
        if let open = current {
            throw MalformedTranscript(description: "the transcript of line \(open.line) does not end")
        }
        return transcripts
    }

    private static func entry(_ line: String) throws -> Entry {
        guard let end = line.firstIndex(of: ":"), let side = line.first, side == "C" || side == "S",
            line[end...].hasPrefix(": ")
        else { throw MalformedTranscript(description: "this is no line of a transcript: \(line)") }
        let digits = line[line.index(after: line.startIndex)..<end]
        guard let connection = digits.isEmpty ? 1 : Int(digits), connection >= 1 else {
            throw MalformedTranscript(description: "this is no connection: \(digits)")
        }
        return Entry(
            connection: connection, isFromClient: side == "C", text: String(line[end...].dropFirst(2)))
    }
}

/// A transcript is not written as the document says.
public struct MalformedTranscript: Error, CustomStringConvertible {
    /// One line: what is wrong.
    public var description: String
}
