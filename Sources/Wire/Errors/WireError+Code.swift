extension WireError {
    /// A stable name, seen on the wire, never reused. Each has a row in Documentation/errors.md.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name on the wire: `[a-z][a-z0-9-]*`.
        public var rawValue: String

        /// Wraps a name; a client may meet one that it does not know yet.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        private init(_ rawValue: String) {
            self.rawValue = rawValue
        }

        // The line.
        /// The line is longer than the server reads.
        public static let lineTooLong = Code("line-too-long")
        /// The line is not UTF-8.
        public static let invalidUTF8 = Code("invalid-utf8")
        /// The line holds a control character.
        public static let invalidCharacter = Code("invalid-character")
        /// The first word is no command.
        public static let unknownCommand = Code("unknown-command")
        /// A word that the command needs is missing.
        public static let missingArgument = Code("missing-argument")
        /// A value is not of the kind that it must be.
        public static let invalidArgument = Code("invalid-argument")
        /// There is more on the line than the command takes.
        public static let unexpectedArgument = Code("unexpected-argument")
        /// An option is given twice.
        public static let repeatedArgument = Code("repeated-argument")
        /// A collection's name or an id is not as it must be.
        public static let invalidID = Code("invalid-id")
        /// The push has no state.
        public static let missingState = Code("missing-state")
        /// The state is not JSON, or JSON that PostgreSQL could not query.
        public static let invalidJSON = Code("invalid-json")
        /// The state nests too deeply.
        public static let jsonTooDeep = Code("json-too-deep")
        /// The state is larger than the server takes.
        public static let stateTooLarge = Code("state-too-large")

        // Who is there.
        /// The command needs a signed-in device.
        public static let notSignedIn = Code("not-signed-in")
        /// The connection has a device already.
        public static let alreadySignedIn = Code("already-signed-in")
        /// There is no such device, or its secret is another.
        public static let loginFailed = Code("login-failed")
        /// The server takes no new players.
        public static let registrationClosed = Code("registration-closed")
        /// The server takes new players by invitation only.
        public static let inviteRequired = Code("invite-required")
        /// The invite is unknown, used or expired.
        public static let inviteInvalid = Code("invite-invalid")
        /// The code is unknown, used or expired.
        public static let codeInvalid = Code("code-invalid")
        /// Too many tries from this address, or at this code.
        public static let tooManyTries = Code("too-many-tries")
        /// The device was revoked.
        public static let deviceRevoked = Code("device-revoked")

        /// The device's token was replaced by another.
        public static let tokenRotated = Code("token-rotated")
        /// The player has no such device.
        public static let noSuchDevice = Code("no-such-device")

        // The games.
        /// `base` is a revision of another game.
        public static let baseMismatch = Code("base-mismatch")
        /// `saved` names an earlier push of this device and game, whose state was another.
        public static let savedReused = Code("saved-reused")
        /// The cursor is beyond the player's last revision.
        public static let cursorAhead = Code("cursor-ahead")
        /// The player has no such game.
        public static let noSuchGame = Code("no-such-game")
        /// The game has no such version.
        public static let noSuchVersion = Code("no-such-version")

        /// The player has versions already, so that no history can be imported.
        public static let playerNotEmpty = Code("player-not-empty")
        /// No import is under way, or another has taken its place.
        public static let noImport = Code("no-import")
        /// What was imported is no history that a server could have written.
        public static let importRefused = Code("import-refused")

        // The server.
        /// The server has as much to do as it takes on.
        public static let busy = Code("busy")
        /// The server cannot reach its database.
        public static let unavailable = Code("unavailable")
        /// The server has as many connections as it takes on.
        public static let tooManyConnections = Code("too-many-connections")
        /// More was asked for in a time than the server gives one address or player.
        public static let rateLimited = Code("rate-limited")
        /// There is as much of this player as the server keeps.
        public static let quotaExceeded = Code("quota-exceeded")
        /// Nobody signed in for too long.
        public static let loginTimeout = Code("login-timeout")
        /// A line did not end for too long.
        public static let lineTimeout = Code("line-timeout")
        /// The server is stopping.
        public static let shuttingDown = Code("shutting-down")
        /// Nothing came from the client for too long.
        public static let idleTimeout = Code("idle-timeout")
        /// The database began a new life: sign in again and start from cursor 0.
        public static let epochChanged = Code("epoch-changed")
        /// The server speaks TLS here, and the client does not.
        public static let tlsRequired = Code("tls-required")
        /// The server made a mistake.
        public static let internalError = Code("internal")

        /// Every code that this server can send.
        public static let all: [Code] = [
            .lineTooLong, .invalidUTF8, .invalidCharacter, .unknownCommand, .missingArgument, .invalidArgument,
            .unexpectedArgument, .repeatedArgument, .invalidID, .missingState, .invalidJSON, .jsonTooDeep,
            .stateTooLarge, .notSignedIn, .alreadySignedIn, .loginFailed, .registrationClosed, .inviteRequired,
            .inviteInvalid, .codeInvalid, .tooManyTries, .deviceRevoked, .tokenRotated, .noSuchDevice, .baseMismatch,
            .savedReused, .cursorAhead, .noSuchGame, .noSuchVersion, .playerNotEmpty, .noImport, .importRefused, .busy,
            .unavailable, .rateLimited, .quotaExceeded, .loginTimeout, .lineTimeout, .tooManyConnections,
            .shuttingDown, .idleTimeout, .epochChanged, .tlsRequired, .internalError,
        ]
    }
}

extension WireError.Code: CustomStringConvertible {
    /// The name on the wire.
    public var description: String { rawValue }
}
