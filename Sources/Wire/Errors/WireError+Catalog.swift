/// One function or constant for each error that the server sends, so that each has one wording.
extension WireError {
    /// A word that a command cannot do without.
    public enum Argument: String, Sendable {
        case collection, id, token, code, part, device

        fileprivate var phrase: String { self == .id ? "an id" : "a \(rawValue)" }
    }

    // MARK: The line

    /// The line is longer than the server reads.
    public static func lineTooLong(limit: Int) -> WireError {
        WireError(
            .lineTooLong, "the line is longer than \(limit) bytes", fields: [Field("limit", String(limit))],
            hint: "Store less in the state; the limit is max-line in the greeting.")
    }

    /// The bytes from `offset` are not UTF-8.
    public static func invalidUTF8(offset: Int) -> WireError {
        WireError(
            .invalidUTF8, "the line is not UTF-8 from byte \(offset)", fields: [Field("offset", String(offset))],
            hint: "Encode every line as UTF-8.")
    }

    /// The byte at `offset` is a control character.
    public static func invalidCharacter(offset: Int) -> WireError {
        WireError(
            .invalidCharacter, "byte \(offset) of the line is a control character",
            fields: [Field("offset", String(offset))],
            hint: "Only tabs may stand in a line; inside a JSON string write \\n, \\u0007 and so on.")
    }

    /// The first word is no command.
    public static func unknownCommand(_ word: String) -> WireError {
        let shown = word.excerpt
        guard let suggestion = Verb.suggestion(for: word) else {
            return WireError(
                .unknownCommand, "there is no command \(shown)", hint: "HELP lists the commands.")
        }
        return WireError(
            .unknownCommand, "there is no command \(shown)", fields: [Field("suggestion", suggestion.rawValue)],
            hint: "Did you mean \(suggestion.rawValue)? HELP lists the commands.")
    }

    /// A word that the command needs is missing.
    public static func missingArgument(_ argument: Argument, of verb: Verb) -> WireError {
        WireError(
            .missingArgument, "\(verb.rawValue) needs \(argument.phrase)", fields: [Field("field", argument.rawValue)],
            hint: "Usage: \(verb.usage)")
    }

    /// An option that a command cannot do without is missing.
    public static func missingOption(_ field: String, of verb: Verb) -> WireError {
        WireError(
            .missingArgument, "\(verb.rawValue) needs \(field)=", fields: [Field("field", field)],
            hint: "HELP \(verb.rawValue) tells how it is written.")
    }

    /// A value is not of the kind that it must be.
    public static func invalidArgument(field: String, _ message: String, hint: String? = nil) -> WireError {
        WireError(.invalidArgument, message, fields: [Field("field", field)], hint: hint)
    }

    /// There is more on the line than the command takes.
    public static func unexpectedArgument(_ word: String, of verb: Verb) -> WireError {
        WireError(
            .unexpectedArgument, "\(verb.rawValue) does not take \(word.excerpt)", hint: "Usage: \(verb.usage)")
    }

    /// An option is given twice.
    public static func repeatedArgument(field: String) -> WireError {
        WireError(
            .repeatedArgument, "\(field)= is given twice", fields: [Field("field", field)], hint: "Give it once.")
    }

    /// A collection's name or an id is not as it must be.
    public static func invalidID(field: String, _ message: String, hint: String? = nil) -> WireError {
        WireError(.invalidID, message, fields: [Field("field", field)], hint: hint)
    }

    /// The push has no state.
    public static let missingState = WireError(
        .missingState, "PUSH needs a state at the end of its line",
        hint: "Usage: \(Verb.push.usage). To remove a game use DELETE.")

    /// The state is larger than the server takes.
    public static func stateTooLarge(limit: Int) -> WireError {
        WireError(
            .stateTooLarge, "the state is larger than \(limit) bytes", fields: [Field("limit", String(limit))],
            hint: "Store less in the state; the limit is max-state in the greeting.")
    }

    // MARK: Who is there

    /// The command needs a signed-in device.
    public static func notSignedIn(_ verb: Verb) -> WireError {
        WireError(
            .notSignedIn, "\(verb.rawValue) needs a signed-in device",
            hint: "Use LOGIN <token>, or REGISTER for a new player, or LINK <code> for another device of yours.")
    }

    /// The connection has a device already.
    public static let alreadySignedIn = WireError(
        .alreadySignedIn, "this connection is signed in already", hint: "Open another connection for another device.")

    /// There is no such device, or its secret is another.
    public static let loginFailed = WireError(
        .loginFailed, "no device has this token",
        hint: "Use REGISTER for a new player, or LINK <code> to join yours from another device.")

    /// The server takes no new players.
    public static let registrationClosed = WireError(
        .registrationClosed, "this server takes no new players", hint: "Ask the server's operator.")

    /// The server takes new players by invitation only.
    public static let inviteRequired = WireError(
        .inviteRequired, "this server takes new players by invitation only",
        hint: "Ask the server's operator for an invite: REGISTER invite=<code>. LINK <code> needs none.")

    /// The invite is unknown, used or expired.
    public static let inviteInvalid = WireError(
        .inviteInvalid, "the invite is unknown, used or expired", hint: "Ask the server's operator for another.")

    /// The code is unknown, used or expired.
    public static let codeInvalid = WireError(
        .codeInvalid, "the code is unknown, used or expired",
        hint: "Codes hold for ten minutes and one use; make another with PAIR on a signed-in device.")

    /// Too many tries from this address, or at this code.
    public static func tooManyTries(retryAfter: Duration) -> WireError {
        WireError(.tooManyTries, "too many tries failed", retryAfter: retryAfter, hint: "Wait, then try again.")
    }

    /// The device was revoked.
    public static let deviceRevoked = WireError(
        .deviceRevoked, "this device was revoked", hint: "Use LINK <code> to join again from another device.")

    /// The token that signed this connection in was replaced.
    public static let tokenRotated = WireError(
        .tokenRotated, "the token of this device was replaced by another", hint: "Use LOGIN with the new token.")

    /// The player has no such device.
    public static let noSuchDevice = WireError(
        .noSuchDevice, "you have no such device", hint: "DEVICES lists the devices.")

    // MARK: The games

    /// `base` is a revision of another game.
    public static func baseMismatch(base: Revision) -> WireError {
        WireError(
            .baseMismatch, "revision \(base) is one of another game", fields: [Field("base", String(base))],
            hint: "Give the revision of this game that the device last saw, or no base.")
    }

    /// `saved` names an earlier push of this device and game, whose state was another.
    public static func savedReused(revision: Revision) -> WireError {
        WireError(
            .savedReused, "this device has pushed another state of this game with the same saved",
            fields: [Field("revision", String(revision))],
            hint: "Give every save a later saved, at least 1 microsecond after the one before.")
    }

    /// The cursor is beyond the player's last revision.
    public static func cursorAhead(revision: Revision) -> WireError {
        WireError(
            .cursorAhead, "the last revision is \(revision)", fields: [Field("revision", String(revision))],
            hint: "The server was restored: pull from since=0 and push every game that you hold.")
    }

    /// The player has no such game.
    public static let noSuchGame = WireError(
        .noSuchGame, "there is no such game", hint: "PULL since=0 lists the games.")

    /// The game has no such version.
    public static let noSuchVersion = WireError(
        .noSuchVersion, "the game has no such version", hint: "HISTORY <collection> <id> lists its versions.")

    /// The player has no such version, of whatever game.
    public static let noSuchRevision = WireError(
        .noSuchVersion, "there is no version with this revision", hint: "VERSIONS since=0 lists the versions.")

    /// The player has versions, so that none can be imported.
    public static let playerNotEmpty = WireError(
        .playerNotEmpty, "the player has games already",
        hint: "Import into a player that was just registered, and has pushed nothing.")

    /// There is no import to go on with.
    public static let noImport = WireError(
        .noImport, "no import is under way here", hint: "Begin it, again if need be: IMPORT BEGIN.")

    /// The history contradicts itself.
    public static func importRefused(rule: String, revision: Revision? = nil, _ message: String) -> WireError {
        WireError(
            .importRefused, message,
            fields: [Field("rule", rule)] + (revision.map { [Field("revision", String($0))] } ?? []),
            hint: "Nothing was imported. Send the history as it was exported.")
    }

    // MARK: The server

    /// The server has as much to do as it takes on.
    public static func busy(retryAfter: Duration = .milliseconds(500)) -> WireError {
        WireError(.busy, "the server has too much to do", retryAfter: retryAfter, hint: "Wait, then send it again.")
    }

    /// The server cannot reach its database.
    public static func unavailable(retryAfter: Duration = .seconds(1)) -> WireError {
        WireError(
            .unavailable, "the server cannot reach its database", retryAfter: retryAfter,
            hint: "Wait, then send it again; a push may be repeated safely.")
    }

    /// The server speaks TLS here, and the client does not.
    public static let tlsRequired = WireError(
        .tlsRequired, "this port speaks TLS only", hint: "Connect with TLS, e.g. to tls://HOST:PORT.")

    /// The server has as many connections as it takes on.
    public static func tooManyConnections(retryAfter: Duration = .seconds(5)) -> WireError {
        WireError(
            .tooManyConnections, "the server has too many connections", retryAfter: retryAfter,
            hint: "Wait, then connect again.")
    }

    /// One address or player has as many connections as it may have.
    public static func tooManyConnections(of whom: String, retryAfter: Duration = .seconds(5)) -> WireError {
        WireError(
            .tooManyConnections, "\(whom) has too many connections", retryAfter: retryAfter,
            hint: "Close those that are not needed, then connect again.")
    }

    /// More came in a time than the server takes.
    public static func rateLimited(_ what: String, retryAfter: Duration) -> WireError {
        // Never "at once": a wait of less than a millisecond is printed as 0.
        WireError(
            .rateLimited, "there are too many \(what)", retryAfter: max(retryAfter, .milliseconds(1)),
            hint: "Wait, then send it again.")
    }

    /// There is as much of this player as the server keeps.
    public static func quotaExceeded(_ what: String, limit: Int) -> WireError {
        WireError(
            .quotaExceeded, "the server keeps no more \(what) of one player",
            fields: [Field("limit", String(limit))],
            hint:
                "Keep the save on the device. Deleting games helps where the games are too many; else ask the operator."
        )
    }

    /// Nobody signed in for too long.
    public static let loginTimeout = WireError(
        .loginTimeout, "nobody signed in for too long", retryAfter: .zero,
        hint: "LOGIN, REGISTER or LINK soon after connecting.")

    /// A line did not end for too long.
    public static let lineTimeout = WireError(
        .lineTimeout, "a line did not end for too long", retryAfter: .zero, hint: "Send each line in one go.")

    /// The server is stopping.
    public static func shuttingDown(retryAfter: Duration = .seconds(1)) -> WireError {
        WireError(
            .shuttingDown, "the server is shutting down", retryAfter: retryAfter,
            hint: "Wait, then connect again.")
    }

    /// Nothing came from the client for too long.
    public static let idleTimeout = WireError(
        .idleTimeout, "nothing came for too long", retryAfter: .zero, hint: "Send PING now and then.")

    /// The database began a new life.
    public static let epochChanged = WireError(
        .epochChanged, "the server was restored and has a new epoch", retryAfter: .zero,
        hint: "Connect again, pull from since=0 and push every game that you hold.")

    /// The server made a mistake.
    public static func internalError(_ message: String = "the server made a mistake") -> WireError {
        WireError(
            .internalError, message, retryAfter: .seconds(30),
            hint: "Tell the server's operator; a push may be repeated safely.")
    }
}

extension String {
    /// At most 32 Unicode scalars of what a peer sent, to be shown in a message.
    var excerpt: String {
        let head = unicodeScalars.prefix(32)
        return head.endIndex == endIndex ? self : String(head) + "…"
    }
}
