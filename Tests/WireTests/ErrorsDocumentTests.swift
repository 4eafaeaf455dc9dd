import Foundation
import Testing

@testable import Wire

@Suite("Documentation/errors.md")
struct ErrorsDocumentTests {
    private struct Row {
        var fields: Set<String>
        var isRetryable: Bool
    }

    private static func rows() throws -> [String: Row] {
        let text = try Document.errors.text()
        var rows: [String: Row] = [:]
        for line in text.split(separator: "\n") where line.hasPrefix("| `") {
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            try #require(cells.count == 8, "\(line)")
            let code = cells[1].trimmingCharacters(in: CharacterSet(charactersIn: "`"))
            let field = cells[3].split(separator: "`", omittingEmptySubsequences: false)
            #expect(rows[code] == nil, "\(code) has two rows")
            #expect(["yes", "no"].contains(cells[4]))
            #expect(["ERR", "BYE", "ERR, BYE"].contains(cells[5]))
            rows[code] = Row(fields: field.count > 1 ? [String(field[1])] : [], isRetryable: cells[4] == "yes")
        }
        return rows
    }

    /// Each error as the catalog makes it.
    private static let catalog: [WireError] = [
        .lineTooLong(limit: 1), .invalidUTF8(offset: 1), .invalidCharacter(offset: 1), .unknownCommand("PSUH"),
        .missingArgument(.id, of: .push), .invalidArgument(field: "base", "m"), .unexpectedArgument("x", of: .ping),
        .repeatedArgument(field: "base"), .invalidID(field: "id", "m"), .missingState,
        WireError(JSONCheck.Failure(reason: .colonExpected, offset: 1)),
        WireError(JSONCheck.Failure(reason: .tooDeep, offset: 1)), .stateTooLarge(limit: 1), .notSignedIn(.push),
        .alreadySignedIn, .loginFailed, .registrationClosed, .inviteRequired, .inviteInvalid,
        .codeInvalid, .tooManyTries(retryAfter: .seconds(9)),
        .deviceRevoked, .tokenRotated, .noSuchDevice, .baseMismatch(base: 1), .savedReused(revision: 1),
        .cursorAhead(revision: 1), .noSuchGame,
        .noSuchVersion, .busy(), .unavailable(), .tooManyConnections(), .shuttingDown(), .idleTimeout, .epochChanged,
        .tlsRequired, .rateLimited("pushes of this player", retryAfter: .seconds(1)),
        .quotaExceeded("games", limit: 1), .loginTimeout, .lineTimeout, .internalError(),
        .playerNotEmpty, .noImport, .importRefused(rule: "gap", "m"),
    ]

    @Test("has a row for each code, and no other rows")
    func rowsAndCodes() throws {
        let documented = Set(try Self.rows().keys)
        let known = Set(WireError.Code.all.map(\.rawValue))
        #expect(known.count == WireError.Code.all.count)
        #expect(documented.subtracting(known) == [], "rows without a code")
        #expect(known.subtracting(documented) == [], "codes without a row")
    }

    @Test("tells each error's fields and whether a retry helps as the catalog has them")
    func rowsAndCatalog() throws {
        let rows = try Self.rows()
        #expect(Set(Self.catalog.map(\.code)) == Set(WireError.Code.all))
        for error in Self.catalog {
            let row = try #require(rows[error.code.rawValue])
            #expect(row.isRetryable == error.isRetryable, "\(error.code)")
            #expect(row.fields == Set(error.fields.map(\.key)), "\(error.code)")
        }
    }

    @Test("an error is one line, with a hint or a message that says what to do")
    func wording() throws {
        for error in Self.catalog {
            var line: [UInt8] = []
            error.print(into: &line)
            #expect(line.count < 500)
            #expect(!error.message.isEmpty && !error.message.hasSuffix("."))
            if let hint = error.hint { #expect(hint.hasSuffix(".") || hint.hasPrefix("Usage: "), "\(hint)") }
        }
    }
}

/// A file of Documentation/.
enum Document: String {
    case errors = "errors.md"
    case protocolReference = "protocol.md"

    func text() throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent("Documentation/\(rawValue)"), encoding: .utf8)
    }
}
