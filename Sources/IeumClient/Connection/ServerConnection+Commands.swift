import Wire

/// A page of the games that changed.
package struct ChangePage: Hashable, Sendable {
    /// The games' heads, tombstones among them.
    package var games: [GameVersion]
    /// Where the next page goes on.
    package var cursor: Revision
    /// Whether there is more now.
    package var hasMore: Bool

    /// Puts a page together.
    package init(games: [GameVersion], cursor: Revision, hasMore: Bool) {
        self.games = games
        self.cursor = cursor
        self.hasMore = hasMore
    }
}

/// One method for each command, with the value that answers it.
extension ServerConnection {
    /// Signs in as a device.
    package func logIn(_ token: Token) throws(ClientError) -> SignIn {
        let signIn = try ask(.login(token), SignIn.init)
        guard signIn.player == token.player, signIn.device == token.device else {
            throw .protocolViolation("it signed in somebody else")
        }
        return signIn
    }

    /// Makes a player with this device as the first.
    /// - Parameter invite: a code of the server's operator, where new players need one.
    package func register(device: String, invite: InviteCode? = nil) throws(ClientError) -> Token {
        try newToken(.register(device: device, invite: invite))
    }

    /// Joins the player who made the code.
    package func link(_ code: PairingCode, device: String) throws(ClientError) -> Token {
        try newToken(.link(code: code, device: device))
    }

    /// Makes a code by which another device joins.
    package func pair() throws(ClientError) -> PairingOffer {
        try ask(.pair, PairingOffer.init)
    }

    /// Offers a version. One that is longer than the server's greeting allows is refused in the server's words, and not sent.
    package func push(_ push: Push) throws(ClientError) -> PushReceipt {
        let size = push.state?.count ?? 0
        // In the server's order: it reads a line before it looks at the state.
        guard size <= greeting.maxLineBytes else { throw .server(.lineTooLong(limit: greeting.maxLineBytes)) }
        guard size <= greeting.maxStateBytes else { throw .server(.stateTooLarge(limit: greeting.maxStateBytes)) }
        return try ask(.push(push), PushReceipt.init)
    }

    /// Reads a page of the changed games.
    package func pull(since: Revision, limit: Int = 100) throws(ClientError) -> ChangePage {
        let lines = try request(.pull(since: since, limit: limit))
        guard case .end(let end)? = lines.last, let cursor = end.cursor, let hasMore = end.more else {
            throw wrongAnswer(.pull)
        }
        guard cursor >= since, !hasMore || cursor > since else {
            throw .protocolViolation("a pull since \(since) leads to cursor \(cursor)")
        }
        return ChangePage(games: lines.dropLast().compactMap(\.game), cursor: cursor, hasMore: hasMore)
    }

    /// Reads a game's head, or one of its versions; a tombstone too.
    package func get(_ key: GameKey, revision: Revision? = nil) throws(ClientError) -> GameVersion {
        guard let version = try request(.get(key, revision: revision)).first?.game, version.game == key else {
            throw wrongAnswer(.get)
        }
        return version
    }

    /// Reads a page of a game's versions, newest first; `before` of the answer is where the next page goes on.
    package func history(
        _ key: GameKey, before: Revision? = nil, limit: Int
    ) throws(ClientError) -> (versions: [VersionEntry], before: Revision?) {
        let lines = try request(.history(key, before: before, limit: limit))
        guard case .end(let end)? = lines.last else { throw wrongAnswer(.history) }
        if let next = end.before, let before, next >= before {
            throw .protocolViolation("a history before \(before) goes on before \(next)")
        }
        return (lines.dropLast().compactMap(\.version), end.before)
    }

    /// Asks to be told of changes after a cursor.
    package func watch(since: Revision) throws(ClientError) {
        _ = try request(.watch(since: since))
    }

    /// Sees whether the server is there.
    /// - Returns: the time until its answer.
    package func ping() throws(ClientError) -> Duration {
        let start = ContinuousClock.now
        _ = try request(.ping)
        return ContinuousClock.now - start
    }

    private func newToken(_ command: Command) throws(ClientError) -> Token {
        let signIn = try ask(command, SignIn.init)
        guard let token = signIn.token, token.player == signIn.player, token.device == signIn.device else {
            throw .protocolViolation("it gave no token for the device that it made")
        }
        return token
    }

    /// Asks for something whose answer is one `OK` line.
    private func ask<Value>(
        _ command: Command, _ read: (ReplyFields) throws(MalformedLine) -> Value
    ) throws(ClientError) -> Value {
        guard case .ok(let fields)? = try request(command).last else { throw wrongAnswer(command.verb) }
        do throws(MalformedLine) {
            return try read(fields)
        } catch {
            throw .protocolViolation(error.description)
        }
    }

    private func wrongAnswer(_ verb: Verb) -> ClientError {
        .protocolViolation("its reply to \(verb.rawValue) lacks something")
    }
}

extension ServerLine {
    fileprivate var game: GameVersion? {
        guard case .game(let version) = self else { return nil }
        return version
    }

    fileprivate var version: VersionEntry? {
        guard case .version(let entry) = self else { return nil }
        return entry
    }
}
