import Arguments
import FileDraft
import Glibc
import IeumClient
import TerminalText
import Wire

/// Why a command did not do what it was asked, in words for a player: what is wrong and what to type next.
struct Failure: Error {
    /// How the program ends.
    var exitCode: ExitCode
    /// A stable name; the server's own where it refused.
    var code: String
    /// What is wrong, one line.
    var message: String
    /// What to do.
    var hint: String?
    /// When to try again, as the server told.
    var retryAfter: Duration?

    init(_ exitCode: ExitCode, code: String, _ message: String, hint: String? = nil, retryAfter: Duration? = nil) {
        self.exitCode = exitCode
        self.code = code
        self.message = message
        self.hint = hint
        self.retryAfter = retryAfter
    }

    /// Puts any error of a command into words.
    init(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let error as UsageError: self.init(.usage, code: "usage", error.message, hint: error.usage)
        case let error as HomeError: self.init(error)
        case let error as StoreError: self.init(error)
        case let error as ClientError: self.init(error)
        case let error as WireError: self.init(.server(error))
        case let error as SyncError: self.init(error)
        case let error as FileDraft.Failure: self.init(.refused, code: "output", error.message)
        case let error as Output.Broken where error.number == EPIPE:
            self.init(.brokenPipe, code: "broken-pipe", "nobody reads the output")
        case let error as Output.Broken:
            let reason = String(cString: strerror(error.number))
            self.init(.refused, code: "output", "stdout cannot be written: \(reason)")
        default: self.init(.refused, code: "failed", "\(error)")
        }
    }

    private init(_ error: HomeError) {
        let (exitCode, code): (ExitCode, String) =
            switch error.kind {
            case .noIdentity: (.notSignedIn, "no-identity")
            case .nowhere: (.usage, "no-home")
            case .identityExists: (.refused, "identity-exists")
            case .exposed: (.refused, "exposed")
            case .damaged: (.refused, "damaged")
            case .otherPlayer: (.refused, "other-player")
            case .locked: (.refused, "locked")
            case .system: (.refused, "system")
            }
        self.init(exitCode, code: code, error.message, hint: error.hint)
    }

    /// Of the home's copy of the games.
    private init(_ error: StoreError) {
        let code =
            switch error.kind {
            case .busy: "locked"
            case .damaged, .foreign: "damaged"
            case .newerFormat, .newerSchemaVersion: "newer-version"
            case .diskFull, .readOnly, .cannotOpen, .sqlite: "system"
            case .typeMismatch, .missingKey, .unknownValue, .invalidState, .notEncodable, .newerSchema, .invalidID,
                .migrationFailed, .misuse:
                "failed"
            }
        let hint =
            error.kind == .busy
            ? "Another process is at work with it. Wait until it has ended, then try again." : error.hint
        self.init(.refused, code: code, error.message, hint: hint)
    }

    /// Of the engine that keeps the copy in step.
    private init(_ error: SyncError) {
        switch error {
        case .offline: self.init(.unreachable, code: "unreachable", error.description, hint: "Try again.")
        case .insecure(let failure): self.init(ClientError.insecure(failure))
        case .signedOut: self.init(.server(WireError(.notSignedIn, "the server does not let this device in")))
        case .refused(let code, let message, let hint):
            self.init(.server(WireError(WireError.Code(rawValue: code), message, hint: hint)))
        case .otherPlayer: self.init(.refused, code: "other-player", error.description)
        case .storage: self.init(.refused, code: "system", error.description)
        case .invalidAddress, .invalidToken: self.init(.refused, code: "damaged", error.description)
        case .stopped: self.init(.refused, code: "failed", error.description)
        }
    }

    private init(_ error: ClientError) {
        switch error {
        case .unreachable:
            self.init(.unreachable, code: "unreachable", error.message, hint: error.hint)
        case .insecure(let failure):
            self.init(
                failure.isRetryable ? .unreachable : .refused, code: failure.reason.rawValue, error.message,
                hint: error.hint)
        case .timedOut:
            self.init(
                .unreachable, code: "timed-out", error.message,
                hint: "Try again, or wait longer: --timeout SECONDS. A push may be repeated safely.")
        case .connectionClosed(let reason?) where !error.isRetryable: self.init(ClientError.server(reason))
        case .connectionClosed(let reason):
            self.init(
                .unreachable, code: reason?.code.rawValue ?? "connection-closed", error.message,
                hint: "Try again; a push may be repeated safely.", retryAfter: error.retryAfter)
        case .protocolViolation:
            self.init(.refused, code: "protocol-violation", error.message, hint: error.hint)
        case .server(let refusal):
            self.init(
                Self.exitCode(of: refusal, isPassing: error.isRetryable), code: refusal.code.rawValue, error.message,
                hint: Self.hint(for: refusal), retryAfter: refusal.retryAfter)
        }
    }

    private static func exitCode(of refusal: WireError, isPassing: Bool) -> ExitCode {
        switch refusal.code {
        case .notSignedIn, .loginFailed, .deviceRevoked: .notSignedIn
        case .noSuchGame, .noSuchVersion: .noSuchGame
        default: isPassing ? .unreachable : .refused
        }
    }

    /// The server's hints name commands of the protocol. Here they are commands of this program.
    private static func hint(for refusal: WireError) -> String? {
        switch refusal.code {
        case .noSuchGame: "List the games: ieum pull --since 0"
        case .noSuchVersion: "List the game's versions: ieum history COLLECTION ID"
        case .notSignedIn, .loginFailed, .deviceRevoked:
            "Join again: ieum pair on another device of yours, then here: "
                + "ieum link CODE --server HOST:PORT --device NAME --replace"
        case .codeInvalid: "Codes hold for ten minutes and one use. Make another: ieum pair on a signed-in device"
        case .registrationClosed:
            "Ask the server's operator, or join a player: ieum link CODE --server HOST:PORT --device NAME"
        case .inviteRequired:
            "Ask the server's operator for an invite, then: IEUM_INVITE=CODE ieum register …; or join a player: "
                + "ieum link CODE --server HOST:PORT --device NAME"
        case .inviteInvalid: "An invite works once, and until a certain day. Ask the server's operator for another."
        case .noSuchDevice: "List your devices: ieum devices"
        case .baseMismatch: "Leave --base out: ieum remembers which revision of the game was seen here."
        case .savedReused: "Give another save another --saved, or leave it out."
        case .unknownCommand:
            "The server is older than this program and does not know this command: upgrade ieumd there."
        case .playerNotEmpty:
            "A history can only be imported into a player that was just registered. Take a new home: "
                + "IEUM_HOME=/path/to/folder ieum register …, then import there."
        case .noImport:
            "The import was interrupted, or another one into this player began. Import again; nothing was imported."
        case .importRefused:
            "Nothing was imported. Export again, and import the file as it is: its lines must not be changed."
        case .cursorAhead: "The server was restored. Start over: ieum pull --since 0"
        default: refusal.hint
        }
    }

    /// The lines for stderr.
    var lines: [String] {
        var lines = ["ieum: \(message.terminalSafe)"]
        for line in (hint ?? "").split(separator: "\n") { lines.append("  \(String(line).terminalSafe)") }
        if let retryAfter { lines.append("  The server asks to wait \(retryAfter.readableText) before the next try.") }
        return lines
    }

    /// The object that stands on stderr instead with `--json`.
    var json: JSONText {
        .object([
            (
                "error",
                .object([
                    ("code", .string(code)), ("message", .string(message)), ("hint", .text(hint)),
                    ("retryAfter", retryAfter.map { .decimal($0.milliseconds / 1_000) } ?? .null),
                    ("exit", .integer(Int64(exitCode.rawValue))),
                ])
            )
        ])
    }
}
