import Arguments
import Foundation
import Glibc
import IeumClient
import Wire

extension ProgramCommand {
    /// `ieum import`
    static let importing = ProgramCommand(
        spec: CommandSpec(
            "ieum import", "bring an exported history into this device's player, who must have no games yet",
            positionals: ["<file|->"],
            options: [
                OptionSpec("timeout", "SECONDS", default: "600", help: "how long to wait for the server"), .json,
            ],
            examples: ["ieum import games.jsonl"],
            exitCodes: [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn].map(\.entry)),
        notes: [
            """
            All of it becomes the player's, or nothing: revisions, times, outcomes and states are what they were, and so is
            the next export. The devices of the history keep their names, and cannot sign in. The server decides every
            version again and refuses what no server could have written. A call that ended in the middle has imported
            nothing, and can be repeated.
            --json prints versions, devices, lastRevision.
            """
        ]
    ) { call in
        let path = call.arguments.positional(0) ?? "-"
        let timeout = try call.arguments.seconds("timeout", in: 0.001...86_400) ?? .seconds(600)
        let patience = ServerConnection.Patience(connecting: min(timeout, .seconds(10)), answer: timeout)
        // Its first line is looked at before anything is asked of a server.
        let file = try ImportFile(path)
        let device = try SignedInDevice(home: call.home(), patience: patience)
        var run = Import(file, device, patience) { call.output.progress("\($0) versions") }
        let totals = try run.carryOut()
        call.output.endProgress()
        if call.wantsJSON {
            try call.printJSON([
                ("versions", .integer(totals.versions)), ("devices", .integer(totals.devices)),
                ("lastRevision", .integer(totals.lastRevision)),
            ])
        } else {
            try call.output.line(
                "imported \(totals.versions) versions by \(totals.devices) devices, up to revision \(totals.lastRevision)"
            )
            call.output.talk("  Get the games: ieum pull")
        }
        return .done
    }
}

/// An exported file that is read from its beginning to its end.
private final class ImportFile {
    /// The name that was given.
    let path: String
    /// The number of the line that was read last.
    var lineNumber: Int { lines.lineNumber }
    private let lines: LineFile
    private var checksum = SHA256()
    private var counted = ImportTotals(versions: 0, devices: 0, lastRevision: 0)

    /// The longest line: a state as large as any server takes, and what stands around it.
    private static let maxLineBytes = (64 << 20) + 4_096

    init(_ path: String) throws {
        self.path = path
        lines = try LineFile(path, limit: Self.maxLineBytes)
        guard let first = try lines.next(), case .header = try read(first.line) else {
            throw problem("export-damaged", "it does not begin like an export")
        }
    }

    /// The next line, checked against what came before it; nil behind the end.
    func next() throws -> ExportLine? {
        guard let (text, isEnded) = try lines.next() else {
            throw problem("export-truncated", "the end is missing: the file was cut off")
        }
        guard isEnded else { throw problem("export-truncated", "it does not end: the file was cut off") }
        let line = try read(text)
        switch line {
        case .header: throw problem("export-damaged", "a header stands in the middle")
        case .device: counted.devices += 1
        case .version: counted.versions += 1
        case .end(let end):
            checksum.update(text[..<(ExportLine.checksumStart(in: text) ?? text.endIndex)])
            guard checksum.hexDigest == end.checksum else {
                throw problem("export-damaged", "the checksum is not that of the lines before: something was changed")
            }
            guard (counted.versions, counted.devices) == (end.totals.versions, end.totals.devices) else {
                throw problem("export-damaged", "there are \(counted.versions) versions by \(counted.devices) devices")
            }
            while let (rest, _) = try lines.next() {
                guard rest.allSatisfy(\.isBlank) else { throw problem("export-damaged", "it stands behind the end") }
            }
            return line
        }
        checksum.update(text)
        checksum.update([UInt8(ascii: "\n")])
        return line
    }

    private func read(_ text: ArraySlice<UInt8>) throws -> ExportLine {
        do throws(ExportLine.Problem) {
            return try ExportLine(text)
        } catch {
            throw problem(error.code, error.message)
        }
    }

    func problem(_ code: String, _ message: String) -> Failure {
        let hint =
            code == "export-version"
            ? "Import it with a newer ieum." : "Nothing was imported. Export again, and import the file as it is."
        return Failure(.usage, code: code, "line \(lineNumber) of \(path): \(message)", hint: hint)
    }

    /// Where a revision's version stands, if the file can be read a second time.
    static func line(of revision: Revision, in path: String) -> Int? {
        guard path != "-", let lines = try? LineFile(path, limit: maxLineBytes) else { return nil }
        let beginning = Array("{\"revision\":\(revision),".utf8)
        while let next = try? lines.next() {
            if next.line.starts(with: beginning) { return lines.lineNumber }
        }
        return nil
    }
}

/// Sends a file's lines to a server, a few ahead of its answers.
private struct Import {
    /// The most lines, and the most bytes of them, that wait for their answers.
    private static let maxLines = 100
    private static let maxBytes = 4 << 20

    private let file: ImportFile
    private let device: SignedInDevice
    private let patience: ServerConnection.Patience
    private let progress: (Int64) -> Void
    private var unanswered: ArraySlice<(id: Int, line: Int, bytes: Int)> = []
    private var unansweredBytes = 0

    init(
        _ file: ImportFile, _ device: SignedInDevice, _ patience: ServerConnection.Patience,
        progress: @escaping (Int64) -> Void
    ) {
        self.file = file
        self.device = device
        self.patience = patience
        self.progress = progress
    }

    mutating func carryOut() throws -> ImportTotals {
        let connection = device.connection
        let id = try connection.beginImport()
        var sent: Int64 = 0
        while let line = try file.next() {
            switch line {
            case .header: break
            case .device(let device): try send(.device(device), bytes: 256, over: connection)
            case .version(let version):
                guard version.detail.size <= connection.greeting.maxStateBytes else {
                    throw file.problem("state-too-large", "its state is larger than this server takes")
                }
                try send(.version(version), bytes: 512 + version.detail.size, over: connection)
                sent += 1
                if sent.isMultiple(of: 1_000) { progress(sent) }
            case .end(let end):
                while !unanswered.isEmpty { try takeAnswer(from: connection) }
                var totals = end.totals
                totals.id = id
                try finish(totals, over: connection)
                return totals
            }
        }
        throw file.problem("export-truncated", "the end is missing")
    }

    private mutating func send(_ part: ImportPart, bytes: Int, over connection: ServerConnection) throws {
        while unanswered.count >= Self.maxLines || (unansweredBytes + bytes > Self.maxBytes && !unanswered.isEmpty) {
            try takeAnswer(from: connection)
        }
        unanswered.append((connection.send(.importing(part)), file.lineNumber, bytes))
        unansweredBytes += bytes
    }

    private mutating func takeAnswer(from connection: ServerConnection) throws {
        guard let first = unanswered.popFirst() else { return }
        unansweredBytes -= first.bytes
        do throws(ClientError) {
            _ = try connection.answer(to: first.id)
        } catch {
            throw refusal(error, line: first.line)
        }
    }

    /// An end whose answer was lost is asked for again: it has the same answer.
    private func finish(_ totals: ImportTotals, over connection: ServerConnection) throws {
        var connection = connection
        var triesLeft = 10
        while true {
            do throws(ClientError) {
                return try connection.endImport(totals)
            } catch {
                guard error.isRetryable, triesLeft > 0 else { throw refusal(error, line: nil) }
            }
            repeat {
                triesLeft -= 1
                usleep(500_000)
                do throws(ClientError) {
                    connection = try ServerConnection(to: device.identity.server, patience: patience)
                    _ = try connection.logIn(device.identity.token)
                    break
                } catch {
                    guard error.isRetryable, triesLeft > 0 else { throw refusal(error, line: nil) }
                }
            } while true
        }
    }

    private func refusal(_ error: ClientError, line: Int?) -> Failure {
        var failure = Failure(error)
        guard case .server(let refusal) = error, !error.isRetryable else {
            failure.hint = "Import again: what was sent is forgotten, unless all of it was imported."
            return failure
        }
        let line =
            line ?? refusal["revision"].flatMap { Revision($0) }.flatMap { ImportFile.line(of: $0, in: file.path) }
        if let line { failure.message = "line \(line) of \(file.path): \(failure.message)" }
        return failure
    }
}
