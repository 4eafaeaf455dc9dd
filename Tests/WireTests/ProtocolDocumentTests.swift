import Foundation
import TestSupport
import Testing

@testable import Wire

/// Holds the transcripts of the document in step with the parser and the session: each reply that needs a database is fed
/// in from the transcript itself, every other must come out of the session as it is written.
@Suite("Documentation/protocol.md")
struct ProtocolDocumentTests {
    private static func transcripts() throws -> [Transcript] {
        try Transcript.all(in: try Document.protocolReference.text())
    }

    @Test("has a transcript for each verb, and names each of them")
    func coverage() throws {
        let transcripts = try Self.transcripts()
        let said = transcripts.flatMap(\.entries).filter(\.isFromClient).map {
            $0.text.prefix { $0 != " " }.uppercased()
        }
        let text = try Document.protocolReference.text()
        for verb in Verb.allCases {
            #expect(said.contains(verb.rawValue), "no transcript has \(verb)")
            #expect(text.contains("### \(verb.rawValue)\n\n"), "no section for \(verb)")
            #expect(text.contains("`\(verb.usage)`") || verb.usage == verb.rawValue, "no usage of \(verb)")
        }
    }

    @Test("names the limits that hold by default")
    func limits() throws {
        let text = try Document.protocolReference.text().replacingOccurrences(of: ",", with: "")
        let limits = Limits()
        for number in [
            limits.maxLineBytes, limits.maxStateBytes, limits.maxPipelinedPushes, limits.defaultPageSize,
            limits.maxPageSize,
            Limits.maxNameCharacters, Limits.maxStateDepth, GameKey.maxCollectionBytes, GameKey.maxIDBytes,
            Token.textLength, JSONCheck.NumericRange.maxIntegerDigits, JSONCheck.NumericRange.maxFractionDigits,
        ] {
            #expect(text.contains("\(number)"))
        }
    }

    @Test("its transcripts are what the session says", arguments: try transcripts())
    func replays(transcript: Transcript) throws {
        var replay = Replay(transcript)
        try replay.run()
    }

    @Test("errors.md and the document name each other's codes")
    func codes() throws {
        let text = try Document.protocolReference.text()
        let codes = Set(WireError.Code.all.map(\.rawValue))
        for entry in try Self.transcripts().flatMap(\.entries) where entry.text.hasPrefix("ERR ") {
            #expect(codes.contains(String(entry.text.split(separator: " ")[1])))
        }
        for line in text.split(separator: "\n") where line.contains("Errors: ") {
            let named = line.components(separatedBy: "Errors: ")[1].split(separator: "`").enumerated()
            for (index, code) in named where index % 2 == 0 { #expect(codes.contains(String(code)), "\(line)") }
        }
    }
}

private struct Replay {
    let entries: [Transcript.Entry]
    private var connections: [Int: SessionHarness] = [:]
    private var output: [Int: [String]] = [:]

    init(_ transcript: Transcript) {
        var values: [String: String] = [:]
        entries = transcript.entries.map { entry in
            var entry = entry
            entry.text = Self.substitute(entry, &values)
            return entry
        }
    }

    mutating func run() throws {
        for (index, entry) in entries.enumerated() {
            let connection = entry.connection
            if connections[connection] == nil {
                connections[connection] = SessionHarness()
                connections[connection]?.open()
                try look(connection, from: index)
            }
            if entry.isFromClient {
                connections[connection]?.send(entry.text)
            } else {
                if output[connection, default: []].isEmpty, entry.text.hasPrefix("* CHANGED revision=") {
                    connections[connection]?.change(to: try #require(Int64(entry.text.dropFirst(19))))
                    try look(connection, from: index)
                }
                for reason in [WireError.deviceRevoked, .tokenRotated]
                where output[connection, default: []].isEmpty && entry.text.hasPrefix("* BYE reason=\(reason.code) ") {
                    connections[connection]?.hangUp(reason)
                    try look(connection, from: index)
                }
                var lines = output[connection, default: []]
                try #require(!lines.isEmpty, "nothing came for: \(entry.text)")
                let said = lines.removeFirst()
                output[connection] = lines
                if entry.text.hasPrefix("IEUM 1 ") {
                    #expect(said.hasPrefix("IEUM 1 server="))
                } else {
                    #expect(said == entry.text)
                }
            }
            try look(connection, from: index + 1)
        }
        for (connection, lines) in output { #expect(lines == [], "connection \(connection) said more") }
    }

    /// Collects what was said, and answers what the session asks for by the next reply of the transcript.
    private mutating func look(_ connection: Int, from index: Int) throws {
        while let action = connections[connection]?.nextAction() {
            guard let request = action.request else { continue }
            var lines: [String] = []
            for entry in entries[index...] where entry.connection == connection && !entry.isFromClient {
                lines.append(entry.text)
                if try ServerLine.parse(Array(entry.text.utf8).span)?.endsReply == true { break }
            }
            try connections[connection]?.answer(action, request, lines)
        }
        output[connection, default: []] += connections[connection]?.lines() ?? []
    }

    /// Puts a sample in the place of each placeholder that stands for a value.
    private static func substitute(_ entry: Transcript.Entry, _ values: inout [String: String]) -> String {
        let holdsValues = ["OK ", "GAME ", "GONE ", "VERSION ", "DEVICE "].contains { entry.text.hasPrefix($0) }
        return entry.text.split(separator: " ", omittingEmptySubsequences: false).map { word in
            guard word.hasSuffix(">"), let open = word.firstIndex(of: "<") else { return String(word) }
            let name = String(word[open...])
            if entry.isFromClient { return String(word[..<open]) + (values[name] ?? name) }
            guard holdsValues else { return String(word) }
            guard open > word.startIndex else { return values[name] ?? String(word) }
            let key = String(word[..<open].dropLast())
            let value = (name == "<*>" ? nil : values[name]) ?? sample(of: key, name)
            values[name] = value
            return "\(key)=\(value)"
        }.joined(separator: " ")
    }

    private static func sample(of key: String, _ name: String) -> String {
        switch key {
        case "player", "device", "head-device":
            "00000000-0000-0000-0000-0000000000\(name.hasPrefix("<ph") ? "02" : "01")"
        case "epoch", "import": "00000000-0000-0000-0000-000000000000"
        case "clock-offset": "-1"
        case "token":
            String(repeating: "A", count: 22) + "." + String(repeating: "A", count: 22) + "."
                + String(repeating: "A", count: 43)
        case "code": "7K3M-Q9TD"
        case "server": "0.1.0"
        case "max-line": String(Limits().maxLineBytes)
        case "max-state": String(Limits().maxStateBytes)
        default: Timestamp.earliest.description
        }
    }
}

extension SessionHarness {
    fileprivate mutating func open() {
        session.connectionOpened(at: .earliest, into: &effects)
    }

    fileprivate mutating func change(to revision: Revision) {
        session.changed(upTo: revision, into: &effects)
    }

    fileprivate mutating func hangUp(_ reason: WireError) {
        session.hangUp(reason, into: &effects)
    }

    fileprivate mutating func nextAction() -> Session.Action? {
        effects.actions.isEmpty ? nil : effects.actions.removeFirst()
    }

    /// Answers a request by lines of a transcript.
    fileprivate mutating func answer(
        _ action: Session.Action, _ request: RequestID, _ lines: [String]
    ) throws {
        let last = try #require(lines.last)
        switch (action, try #require(try ServerLine.parse(Array(last.utf8).span))) {
        case (.push, .error(let error)): session.pushFinished(request, .failure(error), into: &effects)
        case (_, .error(let error)): session.requestFailed(request, error, into: &effects)
        case (.push, .ok(let fields)):
            session.pushFinished(request, .success(try PushReceipt(fields)), into: &effects)
        case (.signIn, .ok(let fields)), (.register, .ok(let fields)), (.redeem, .ok(let fields)):
            session.signedIn(request, as: try SignIn(fields), into: &effects)
        case (.createPairingCode, .ok(let fields)):
            session.pairingCodeCreated(request, try PairingOffer(fields), into: &effects)
        case (.watch, .ok(let fields)):
            session.watchEstablished(request, revision: try fields.revision("revision"), into: &effects)
        case (.changeAccount(.rotate, _, _, _), .ok(let fields)):
            session.accountChanged(request, .rotated(try TokenOffer(fields)), into: &effects)
        case (.changeAccount, .ok): session.accountChanged(request, .done, into: &effects)
        case (.importing(let part, _, _, _), .ok(let fields)):
            let answer: Reply =
                switch part {
                case .begin: .importBegun(try fields.uuid("import"))
                case .end: .imported(revision: try fields.revision("revision"))
                case .device, .version, .cancel: .done
                }
            session.importAnswered(request, answer, into: &effects)
        case (.read(let read, _, _), .end(let end)):
            var bytes: [UInt8] = []
            for line in lines.dropLast() {
                switch (read, try #require(try ServerLine.parse(Array(line.utf8).span))) {
                case (.pull, .game(let version)), (.get, .game(let version)): version.print(into: &bytes)
                case (.history, .version(let entry)), (.versions, .version(let entry)): entry.print(into: &bytes)
                case (.devices, .device(let entry)): entry.print(into: &bytes)
                default: Issue.record("\(line) is no answer to \(read)")
                }
            }
            end.print(into: &bytes)
            session.readFinished(request, lines: bytes, into: &effects)
        default: Issue.record("\(last) is no answer to \(action)")
        }
    }
}
